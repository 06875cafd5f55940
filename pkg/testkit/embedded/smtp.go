package embedded

import (
	"bytes"
	"context"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// maxMailBytes bounds a message.
const maxMailBytes = 1 << 20

// SMTPConfig configures a private SMTP server. The zero value is usable.
type SMTPConfig struct {
	// TLS is offered with STARTTLS; nil: not offered. Without it AUTH is accepted over plain connections.
	TLS *tls.Config
	// ImplicitTLS starts TLS at the first byte instead.
	ImplicitTLS bool
	// Username and Password must be given with AUTH PLAIN; without a Username AUTH is not offered.
	Username, Password string
	// Accept decides on RCPT; nil accepts all recipients. An error that is not a *SMTPRefusal becomes a temporary failure.
	Accept func(recipient string) error
	// Received is called with each message, one at a time; nil discards messages. An error rejects the message.
	Received func(Mail) error
}

// SMTPRefusal is an error with the code of the server's reply.
type SMTPRefusal struct {
	Code int
	Text string
}

func (r *SMTPRefusal) Error() string { return fmt.Sprintf("%d %s", r.Code, r.Text) }

// SMTP is a private SMTP server on a loopback port. It delivers nothing.
type SMTP struct {
	// Address is its host:port.
	Address  string
	listener net.Listener
	server   *smtp.Server
	served   chan struct{}
}

// StartSMTP starts a server, which runs until it is stopped.
func StartSMTP(ctx context.Context, config SMTPConfig) (*SMTP, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start an SMTP server: %w", err)
	}
	if config.ImplicitTLS {
		listener = tls.NewListener(listener, config.TLS)
	}
	mailbox := &mailbox{SMTPConfig: config}
	server := smtp.NewServer(smtp.BackendFunc(mailbox.open))
	server.Domain, server.TLSConfig = "localhost", config.TLS
	server.MaxMessageBytes, server.MaxRecipients = maxMailBytes, 10
	server.ReadTimeout, server.WriteTimeout = time.Minute, time.Minute
	server.AllowInsecureAuth = config.TLS == nil
	server.EnableSMTPUTF8 = true
	server.ErrorLog = discardLog{}
	s := &SMTP{Address: listener.Addr().String(), listener: listener, server: server, served: make(chan struct{})}
	go func() {
		defer close(s.served)
		_ = server.Serve(listener) // returns after Stop
	}()
	return s, nil
}

// Stop closes the listener and all connections. It may be called more than once.
func (s *SMTP) Stop() error {
	err := s.server.Close()
	_ = s.listener.Close() // the server closes the listener only once it serves
	<-s.served
	if errors.Is(err, smtp.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// discardLog drops go-smtp's log lines about disconnected clients.
type discardLog struct{}

func (discardLog) Printf(string, ...any) {}
func (discardLog) Println(...any)        {}

// mailbox receives the messages of all connections.
type mailbox struct {
	SMTPConfig
	mu sync.Mutex
}

func (m *mailbox) open(conn *smtp.Conn) (smtp.Session, error) {
	return &mailSession{mailbox: m, conn: conn}, nil
}

// mailSession is one connection.
type mailSession struct {
	mailbox  *mailbox
	conn     *smtp.Conn
	signedIn bool
	mail     Mail
}

// AuthMechanisms implements smtp.AuthSession.
func (s *mailSession) AuthMechanisms() []string {
	if s.mailbox.Username == "" {
		return nil
	}
	return []string{sasl.Plain}
}

// Auth implements smtp.AuthSession.
func (s *mailSession) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, username, password string) error {
		given, want := []byte(username+"\x00"+password), []byte(s.mailbox.Username+"\x00"+s.mailbox.Password)
		if subtle.ConstantTimeCompare(given, want) != 1 {
			return smtp.ErrAuthFailed
		}
		s.signedIn = true
		return nil
	}), nil
}

// Mail implements smtp.Session.
func (s *mailSession) Mail(from string, _ *smtp.MailOptions) error {
	if s.mailbox.Username != "" && !s.signedIn {
		return smtp.ErrAuthRequired
	}
	_, encrypted := s.conn.TLSConnectionState()
	s.mail = Mail{From: from, Encrypted: encrypted}
	return nil
}

// Rcpt implements smtp.Session.
func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	if s.mailbox.Accept != nil {
		if err := s.mailbox.Accept(to); err != nil {
			return refusal(err)
		}
	}
	s.mail.To = append(s.mail.To, to)
	return nil
}

// Data implements smtp.Session.
func (s *mailSession) Data(r io.Reader) error {
	data, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.mail.Data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	if s.mailbox.Received == nil {
		return nil
	}
	s.mailbox.mu.Lock()
	defer s.mailbox.mu.Unlock()
	return refusal(s.mailbox.Received(s.mail))
}

// Reset implements smtp.Session.
func (s *mailSession) Reset() { s.mail = Mail{} }

// Logout implements smtp.Session.
func (s *mailSession) Logout() error { return nil }

// refusal converts an error to go-smtp's reply.
func refusal(err error) error {
	if refused, ok := errors.AsType[*SMTPRefusal](err); ok {
		return &smtp.SMTPError{Code: refused.Code, EnhancedCode: smtp.EnhancedCode{refused.Code / 100, 0, 0}, Message: refused.Text}
	}
	return err
}
