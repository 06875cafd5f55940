package mail_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/mail"
	"intents.internal/core/pgtest"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/testkit/endless"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// mailServer is an SMTP server and what it took.
type mailServer struct {
	*embedded.SMTP
	mails chan embedded.Mail
}

func startSMTP(t *testing.T, config embedded.SMTPConfig) *mailServer {
	t.Helper()
	s := &mailServer{mails: make(chan embedded.Mail, 1000)}
	receive := config.Received
	config.Received = func(m embedded.Mail) error {
		if receive != nil {
			if err := receive(m); err != nil {
				return err
			}
		}
		s.mails <- m
		return nil
	}
	var err error
	if s.SMTP, err = embedded.StartSMTP(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop() })
	return s
}

// certificate is one for example.com and 127.0.0.1, and who is to trust it.
func certificate(t *testing.T) (*tls.Config, *x509.CertPool) {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	authorities := x509.NewCertPool()
	authorities.AddCert(server.Certificate())
	return &tls.Config{Certificates: server.TLS.Certificates, MinVersion: tls.VersionTLS12}, authorities
}

const from = `"Transfers, Example" <no-reply@example.com>`

func send(t *testing.T, config mail.SMTPConfig, recipient string) error {
	t.Helper()
	config.From, config.Domain = from, "intents.example"
	client, err := mail.NewSMTP(config)
	if err != nil {
		t.Fatal(err)
	}
	message, err := mail.Write(recipient, mail.ResetPassword, mail.Link{Service: "intents.example", URL: "https://intents.example/x?token=abc&b=c", ValidFor: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	return client.Send(ctx, message)
}

func TestSMTP_Encryption(t *testing.T) {
	t.Parallel()
	offered, authorities := certificate(t)
	plain := startSMTP(t, embedded.SMTPConfig{})
	starting := startSMTP(t, embedded.SMTPConfig{TLS: offered, Username: "ann", Password: "p@ss word"})
	implicit := startSMTP(t, embedded.SMTPConfig{TLS: offered, ImplicitTLS: true})
	guarded := startSMTP(t, embedded.SMTPConfig{Username: "ann", Password: "p@ss word"})
	both := startSMTP(t, embedded.SMTPConfig{TLS: offered, ImplicitTLS: true, Username: "ann", Password: "p@ss word"})
	for name, c := range map[string]struct {
		config    mail.SMTPConfig
		server    *mailServer
		encrypted bool
		fails     string // what the error says, empty for none
	}{
		"plain on a loopback address":   {mail.SMTPConfig{URL: "smtp://" + plain.Address}, plain, false, ""},
		"plain elsewhere":               {mail.SMTPConfig{URL: "smtp://example.com", Address: plain.Address}, plain, false, "STARTTLS"},
		"a password on a loopback":      {mail.SMTPConfig{URL: "smtp://ann:p%40ss%20word@" + guarded.Address}, guarded, false, ""},
		"STARTTLS":                      {mail.SMTPConfig{URL: "smtp://ann:p%40ss%20word@example.com:25", Address: starting.Address, Authorities: authorities}, starting, true, ""},
		"STARTTLS, nobody's authority":  {mail.SMTPConfig{URL: "smtp://ann:p%40ss%20word@example.com", Address: starting.Address}, starting, true, "certificate"},
		"STARTTLS, another host's name": {mail.SMTPConfig{URL: "smtp://mail.example.net", Address: starting.Address, Authorities: authorities}, starting, true, "certificate"},
		"STARTTLS, a wrong password":    {mail.SMTPConfig{URL: "smtp://ann:wrong@example.com", Address: starting.Address, Authorities: authorities}, starting, true, "535"},
		"STARTTLS, no password":         {mail.SMTPConfig{URL: "smtp://example.com", Address: starting.Address, Authorities: authorities}, starting, true, "502"},
		"TLS from the first byte":       {mail.SMTPConfig{URL: "smtps://" + implicit.Address, Authorities: authorities}, implicit, true, ""},
		"TLS and a password":            {mail.SMTPConfig{URL: "smtps://ann:p%40ss%20word@" + both.Address, Authorities: authorities}, both, true, ""},
		"TLS, another host's name":      {mail.SMTPConfig{URL: "smtps://mail.example.net", Address: implicit.Address, Authorities: authorities}, implicit, true, "certificate"},
		"TLS, nobody's authority":       {mail.SMTPConfig{URL: "smtps://" + implicit.Address}, implicit, true, "certificate"},
	} {
		recipient := strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return r
			}
			return -1
		}, strings.ToLower(name)) + "@example.org"
		err := send(t, c.config, recipient)
		if c.fails != "" {
			if err == nil || !strings.Contains(err.Error(), c.fails) || strings.Contains(err.Error(), recipient) {
				t.Errorf("%s: %v, want one about %s", name, err, c.fails)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := <-c.server.mails; got.Encrypted != c.encrypted || !cmp.Equal(got.To, []string{recipient}) || got.From != "no-reply@example.com" {
			t.Errorf("%s: from %s to %s, encrypted = %t", name, got.From, got.To, got.Encrypted)
		}
	}
	for _, s := range []*mailServer{plain, starting, implicit, guarded, both} {
		if len(s.mails) > 0 {
			t.Errorf("%s took another mail", s.Address)
		}
	}
}

func TestSMTP_Message(t *testing.T) {
	t.Parallel()
	s := startSMTP(t, embedded.SMTPConfig{})
	if err := send(t, mail.SMTPConfig{URL: "smtp://" + s.Address}, "ann@example.com"); err != nil {
		t.Fatal(err)
	}
	got := <-s.mails
	header, _, _ := strings.Cut(string(got.Data), "\n\n")
	for pattern, with := range map[string]string{
		`(?m)^Date: .*$`: "Date: <>", `<[A-Z2-7]{26}@`: "<id@", `boundary=\S+`: "boundary=<>",
	} {
		header = regexp.MustCompile(pattern).ReplaceAllString(header, with)
	}
	want := strings.Join([]string{
		"Date: <>", "MIME-Version: 1.0", "Message-ID: <id@intents.example>", "Subject: Reset your password at intents.example",
		"Auto-Submitted: auto-generated", `From: "Transfers, Example" <no-reply@example.com>`, "To: <ann@example.com>",
		"Content-Type: multipart/alternative;", " boundary=<>",
	}, "\n")
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(header, "\n"), sorted); diff != "" {
		t.Errorf("the header (-want +got):\n%s", diff)
	}
	parts, err := got.Parts()
	if err != nil || len(parts) != 2 {
		t.Fatalf("%d parts, %v", len(parts), err)
	}
	if text := parts["text/plain"]; !strings.Contains(text, "\nhttps://intents.example/x?token=abc&b=c\n") || !strings.Contains(text, "within 60 minutes") {
		t.Errorf("the text:\n%s", text)
	}
	if html := parts["text/html"]; !strings.Contains(html, `<a href="https://intents.example/x?token=abc&amp;b=c">`) {
		t.Errorf("the HTML:\n%s", html)
	}
	// Nothing of it is fetched when it is read: no image, style, script or font, and no address but the link.
	if found := regexp.MustCompile(`(?i)<(img|script|link|style|iframe)|src=|url\(|@import`).FindString(parts["text/html"]); found != "" {
		t.Errorf("the HTML has %s", found)
	}
	if links := regexp.MustCompile(`href="([^"]*)"`).FindAllString(parts["text/html"], -1); len(links) != 1 {
		t.Errorf("the HTML leads to %q", links)
	}
}

// A recipient is one address, whatever is in its text: no second recipient and no header field comes of it.
func TestSMTP_Recipients(t *testing.T) {
	t.Parallel()
	s := startSMTP(t, embedded.SMTPConfig{})
	config := mail.SMTPConfig{URL: "smtp://" + s.Address}
	for _, recipient := range []string{
		"ann@example.com\r\nBcc: eve@example.com", "ann@example.com\nSubject: hello", "ann@example.com, eve@example.com", "ann@example.com>\r\nRCPT TO:<eve@example.com",
		"\"ann\r\nBcc: eve\"@example.com", "", "ann", "ann@example.com\x00",
	} {
		var refused *mail.SendError
		if err := send(t, config, recipient); !errors.As(err, &refused) || !refused.Permanent {
			t.Errorf("%q: %v", recipient, err)
		}
	}
	for _, recipient := range []string{`"ann bcc: eve"@example.com`, "ann+tag@example.com", "bücher@example.com"} {
		if err := send(t, config, recipient); err != nil {
			t.Errorf("%q: %v", recipient, err)
			continue
		}
		if got := <-s.mails; len(got.To) != 1 || strings.Contains(strings.ToLower(string(got.Data)), "\nbcc:") {
			t.Errorf("%q went to %q:\n%s", recipient, got.To, got.Data)
		}
	}
	if len(s.mails) > 0 {
		t.Errorf("%d mails were sent", len(s.mails))
	}
}

func TestSMTP_Refused(t *testing.T) {
	t.Parallel()
	answers := map[string]int{"busy@example.com": 451, "unknown@example.com": 550}
	s := startSMTP(t, embedded.SMTPConfig{Accept: func(recipient string) error {
		if code := answers[recipient]; code != 0 {
			return &embedded.SMTPRefusal{Code: code, Text: "no mail for " + recipient}
		}
		return nil
	}, Received: func(m embedded.Mail) error {
		if m.To[0] == "full@example.com" {
			return &embedded.SMTPRefusal{Code: 552, Text: "the mailbox is full"}
		}
		return nil
	}})
	for recipient, want := range map[string]mail.SendError{
		"busy@example.com":    {Step: "sending SMTP RCPT TO command", Code: 451},
		"unknown@example.com": {Step: "sending SMTP RCPT TO command", Code: 550, Permanent: true},
		"full@example.com":    {Step: "closing SMTP DATA writer", Code: 552, Permanent: true},
	} {
		var got *mail.SendError
		if err := send(t, mail.SMTPConfig{URL: "smtp://" + s.Address}, recipient); !errors.As(err, &got) || *got != want {
			t.Errorf("%s: %+v, want %+v", recipient, got, want)
		}
		if strings.Contains(got.Error(), "example.com") {
			t.Errorf("the error names the recipient: %v", got)
		}
	}
}

func TestNewSMTP_Invalid(t *testing.T) {
	t.Parallel()
	for _, c := range []mail.SMTPConfig{
		{URL: "", From: from},
		{URL: "http://ann:hunter2@example.com", From: from},
		{URL: "smtp://ann@example.com", From: from},
		{URL: "smtp://:hunter2@example.com", From: from},
		{URL: "smtp://ann:hunter2@example.com:0", From: from},
		{URL: "smtp://ann:hunter2@example.com/path", From: from},
		{URL: "smtp://ann:hunter2@example.com?tls=no", From: from},
		{URL: "smtp://ann:hunter2@:25", From: from},
		{URL: "smtp://ann:hunter2@exa mple.com", From: from},
		{URL: "smtp://ann:hunter2@example.com", From: ""},
		{URL: "smtp://ann:hunter2@example.com", From: "Ann"},
		{URL: "smtp://ann:hunter2@example.com", From: "a@example.com\r\nBcc: b@example.com"},
	} {
		if _, err := mail.NewSMTP(c); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

var sorted = cmp.Transformer("sort", func(lines []string) map[string]bool {
	set := map[string]bool{}
	for _, line := range lines {
		set[line] = true
	}
	return set
})

// A mail server cannot hold a sender for longer than its context.
func TestSMTP_EndlessReplies(t *testing.T) {
	t.Parallel()
	message, err := mail.Write("ann@example.org", mail.ResetPassword, mail.Link{Service: "intents.example", URL: "https://intents.example/x", ValidFor: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	endless.WantEnd(t, endless.SMTP, func(ctx context.Context, address string) {
		client, err := mail.NewSMTP(mail.SMTPConfig{URL: "smtp://" + address, From: from, Domain: "intents.example"})
		if err != nil {
			t.Error(err)
		} else if client.Send(ctx, message) == nil {
			t.Error("the message counts as sent")
		}
	})
}
