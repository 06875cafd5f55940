package mail

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"time"

	gomail "github.com/wneessen/go-mail"

	"intents.internal/core/outbound"
	"intents.internal/pkg/loopback"
)

const (
	// submissionPort is RFC 6409's, with STARTTLS, and submissionsPort RFC 8314's, with implicit TLS.
	submissionPort, submissionsPort = 587, 465
	// stepTimeout bounds the connection setup up to the message, and separately the message. sendTimeout bounds both with the QUIT.
	stepTimeout, sendTimeout = 15 * time.Second, 30 * time.Second
)

// tlsMechanisms are go-mail's own choice on a connection with TLS. It does not see that one which it has not dialled has TLS.
var tlsMechanisms = []gomail.SMTPAuthType{
	gomail.SMTPAuthSCRAMSHA256PLUS, gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1PLUS, gomail.SMTPAuthSCRAMSHA1,
	gomail.SMTPAuthNTLM, gomail.SMTPAuthCramMD5, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin,
}

// SMTPConfig is the configuration of the SMTP server.
type SMTPConfig struct {
	// URL is smtp://user:password@host:port, with STARTTLS unless host is a loopback address, or smtps:// for implicit TLS. User,
	// password and port may be omitted; the default ports are 587 and 465.
	URL string
	// From is the sender's address, such as "Transfers <no-reply@example.com>".
	From string
	// Domain is the domain of Message-IDs and the EHLO name.
	Domain string
	// Authorities are the certificate authorities for the server's certificate, nil for the system's.
	Authorities *x509.CertPool
	// Address is dialled in place of the URL's in tests; empty for the URL's.
	Address string
}

// SMTP sends messages through a server. It is safe for concurrent use.
type SMTP struct {
	host    string
	options []gomail.Option
	// tls is for a connection with implicit TLS, nil for one without.
	tls     *tls.Config
	address string
	from    string
	domain  string
}

// SendError is the error for a message that the server did not accept. It omits the server's text, which may repeat the
// recipient's address.
type SendError struct {
	// Step is the failed step, such as "sending SMTP RCPT TO command".
	Step string
	// Code is the server's reply code, 0 for none.
	Code int
	// Permanent means that the server rejects this message permanently (RFC 5321 section 4.2.1). A rejected sender is not
	// permanent: it is a configuration error, which can be fixed while the message waits.
	Permanent bool
}

func (e *SendError) Error() string {
	return fmt.Sprintf("%s: the SMTP server replied %d", e.Step, e.Code)
}

// NewSMTP validates the configuration and does not connect. Its errors never repeat the URL, which may hold a password.
func NewSMTP(config SMTPConfig) (*SMTP, error) {
	server, err := parseURL(config.URL)
	if err := errors.Join(err, ValidateFrom(config.From)); err != nil {
		return nil, err
	}
	encryption := &tls.Config{ServerName: server.host, RootCAs: config.Authorities, MinVersion: tls.VersionTLS12}
	s := &SMTP{host: server.host, address: config.Address, from: config.From, domain: config.Domain, options: []gomail.Option{
		gomail.WithPort(server.port), gomail.WithTimeout(stepTimeout), gomail.WithHELO(config.Domain), gomail.WithTLSConfig(encryption),
	}}
	authentication := gomail.WithSMTPAuth(gomail.SMTPAuthAutoDiscover)
	switch {
	case server.tls:
		s.tls = encryption
		s.options, authentication = append(s.options, gomail.WithSSL()), gomail.WithOpportunisticSMTPAuth(tlsMechanisms...)
	case server.loopback:
		s.options, authentication = append(s.options, gomail.WithTLSPolicy(gomail.NoTLS)), gomail.WithSMTPAuth(gomail.SMTPAuthPlain)
	default:
		s.options = append(s.options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if server.user != nil {
		password, _ := server.user.Password()
		s.options = append(s.options, authentication, gomail.WithUsername(server.user.Username()), gomail.WithPassword(password))
	}
	_, err = gomail.NewClient(s.host, s.options...)
	return s, err
}

// ValidateURL returns an error for an invalid server URL. It never repeats the URL.
func ValidateURL(raw string) error {
	_, err := parseURL(raw)
	return err
}

// ValidateFrom returns an error for an invalid sender.
func ValidateFrom(from string) error {
	if _, err := mail.ParseAddress(from); err != nil {
		return errors.New("must be an e-mail address such as no-reply@example.com, with or without a name before it")
	}
	return nil
}

// server is a parsed URL.
type server struct {
	host          string
	port          int
	user          *url.Userinfo
	tls, loopback bool
}

func parseURL(raw string) (s server, err error) {
	invalid := errors.New("must be smtp:// or smtps://, then user:password@ if the server asks for them, a host and a port")
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || u.Scheme != "smtp" && u.Scheme != "smtps" {
		return s, invalid
	}
	if u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return s, invalid
	}
	s = server{host: u.Hostname(), user: u.User, tls: u.Scheme == "smtps", port: submissionPort}
	if s.tls {
		s.port = submissionsPort
	}
	if u.Port() != "" {
		if s.port, err = strconv.Atoi(u.Port()); err != nil || s.port < 1 || s.port > 65535 {
			return s, invalid
		}
	}
	if s.user != nil {
		if password, _ := s.user.Password(); s.user.Username() == "" || password == "" {
			return s, invalid
		}
	}
	s.loopback = loopback.IsHost(s.host)
	return s, nil
}

// Send sends a message to the server, for sendTimeout at most. The error is a *SendError for a message that the server did not accept, and another error
// if the server cannot be reached, has no valid certificate or rejects the credentials.
func (s *SMTP) Send(ctx context.Context, m *Message) error {
	message, err := s.compose(m)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	client, err := gomail.NewClient(s.host, append(slices.Clone(s.options), gomail.WithDialContextFunc(s.dialUntil(ctx)))...)
	if err != nil {
		return err
	}
	if err := client.DialWithContext(ctx); err != nil {
		return fmt.Errorf("connect to the SMTP server: %w", err)
	}
	defer client.Close() // an error of QUIT does not matter
	err = client.Send(message)
	if message.IsDelivered() {
		return nil // the server accepted the message and failed afterwards
	}
	if refused, ok := errors.AsType[*gomail.SendError](err); ok {
		code := refused.ErrorCode()
		return &SendError{Step: refused.Reason.String(), Code: code, Permanent: code >= 500 && refused.Reason != gomail.ErrSMTPMailFrom}
	}
	return err
}

// dialUntil returns a dialer of connections that end with ctx. Those of go-mail have the context of the connection setup, and deadlines that each
// step moves.
func (s *SMTP) dialUntil(ctx context.Context) gomail.DialContextFunc {
	return func(setup context.Context, network, address string) (net.Conn, error) {
		conn, err := outbound.Dial(ctx, network, cmp.Or(s.address, address))
		if err != nil || s.tls == nil {
			return conn, err
		}
		encrypted := tls.Client(conn, s.tls)
		if err := encrypted.HandshakeContext(setup); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return encrypted, nil
	}
}

// compose builds the go-mail message. go-mail encodes header fields and rejects invalid addresses.
func (s *SMTP) compose(m *Message) (*gomail.Msg, error) {
	message := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	if err := message.From(s.from); err != nil {
		return nil, errors.New("the sender is no e-mail address")
	}
	if err := message.To(m.To); err != nil {
		return nil, &SendError{Step: "reading the recipient's address", Permanent: true}
	}
	message.Subject(m.Subject)
	message.SetDate()
	message.SetMessageIDWithValue(rand.Text() + "@" + s.domain)
	message.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: suppresses automatic replies
	message.SetBodyString(gomail.TypeTextPlain, m.Text)
	message.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	return message, nil
}
