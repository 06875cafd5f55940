package mail

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	gomail "github.com/wneessen/go-mail"
)

const (
	// submissionPort and submissionsPort are those of RFC 6409, with STARTTLS, and of RFC 8314, with TLS from the first byte.
	submissionPort, submissionsPort = 587, 465
	// stepTimeout bounds connecting with all that precedes the message, and then the message.
	stepTimeout = 15 * time.Second
)

// SMTPConfig says where mail is sent.
type SMTPConfig struct {
	// URL is smtp://user:password@host:port, with STARTTLS unless host is a loopback address, or smtps:// for TLS from the first byte.
	// User, password and port may be left out; the ports are 587 and 465.
	URL string
	// From is the sender's address, such as "Transfers <no-reply@example.com>".
	From string
	// Domain is the domain of Message-IDs, and what the server is greeted with.
	Domain string
	// Authorities are those of the server's certificate, nil for the system's.
	Authorities *x509.CertPool
	// Dial connects to the server, nil for the network's own way.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// SMTP sends messages through a server. It is safe for concurrent use.
type SMTP struct {
	host    string
	options []gomail.Option
	from    string
	domain  string
}

// SendError is a message that the server did not take. It has no text of the server, which may repeat the recipient's address.
type SendError struct {
	// Step is what failed, such as "sending SMTP RCPT TO command".
	Step string
	// Code is the server's reply code, 0 for none.
	Code int
	// Permanent says that the server refuses this message for good (RFC 5321 section 4.2.1). A refused sender is a fault of the settings,
	// which can be mended while the message waits.
	Permanent bool
}

func (e *SendError) Error() string {
	return fmt.Sprintf("%s: the SMTP server replied %d", e.Step, e.Code)
}

// NewSMTP checks the configuration and connects to nothing. Its errors never repeat the URL, which may hold a password.
func NewSMTP(config SMTPConfig) (*SMTP, error) {
	server, err := parseURL(config.URL)
	if err := errors.Join(err, ValidateFrom(config.From)); err != nil {
		return nil, err
	}
	options := []gomail.Option{
		gomail.WithPort(server.port), gomail.WithTimeout(stepTimeout), gomail.WithHELO(config.Domain),
		gomail.WithTLSConfig(&tls.Config{ServerName: server.host, RootCAs: config.Authorities, MinVersion: tls.VersionTLS12}),
	}
	authentication := gomail.SMTPAuthAutoDiscover
	switch {
	case server.tls:
		options = append(options, gomail.WithSSL())
	case server.loopback:
		options, authentication = append(options, gomail.WithTLSPolicy(gomail.NoTLS)), gomail.SMTPAuthPlain
	default:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory))
	}
	if server.user != nil {
		password, _ := server.user.Password()
		options = append(options, gomail.WithSMTPAuth(authentication), gomail.WithUsername(server.user.Username()), gomail.WithPassword(password))
	}
	if config.Dial != nil {
		options = append(options, gomail.WithDialContextFunc(config.Dial))
	}
	s := &SMTP{host: server.host, options: options, from: config.From, domain: config.Domain}
	_, err = gomail.NewClient(s.host, s.options...)
	return s, err
}

// ValidateURL says what is wrong with a URL of a server. It never repeats the URL.
func ValidateURL(raw string) error {
	_, err := parseURL(raw)
	return err
}

// ValidateFrom says what is wrong with a sender.
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
	address, err := netip.ParseAddr(s.host)
	s.loopback = s.host == "localhost" || err == nil && address.IsLoopback()
	return s, nil
}

// Send hands a message to the server. The error is a *SendError for a message that the server did not take, and another where the server
// could not be reached, has no valid certificate or refuses the user.
func (s *SMTP) Send(ctx context.Context, m *Message) error {
	message, err := s.compose(m)
	if err != nil {
		return err
	}
	client, err := gomail.NewClient(s.host, s.options...)
	if err != nil {
		return err
	}
	if err := client.DialWithContext(ctx); err != nil {
		return fmt.Errorf("connect to the SMTP server: %w", err)
	}
	defer client.Close() // what was sent is sent, however the server takes the farewell
	err = client.Send(message)
	if message.IsDelivered() {
		return nil // the server has taken it, and failed in what follows
	}
	if refused, ok := errors.AsType[*gomail.SendError](err); ok {
		code := refused.ErrorCode()
		return &SendError{Step: refused.Reason.String(), Code: code, Permanent: code >= 500 && refused.Reason != gomail.ErrSMTPMailFrom}
	}
	return err
}

// compose makes the message of go-mail, which encodes header fields and refuses addresses that are none.
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
	message.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: no vacation notice answers it
	message.SetBodyString(gomail.TypeTextPlain, m.Text)
	message.AddAlternativeString(gomail.TypeTextHTML, m.HTML)
	return message, nil
}
