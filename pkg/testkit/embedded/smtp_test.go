package embedded_test

import (
	"net/smtp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/testkit/embedded"
)

const message = "Subject: hello\r\nContent-Type: multipart/alternative; boundary=b\r\n\r\n" +
	"--b\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\nOpen http://127.0.0.1/x?a=3Db\r\n" +
	"--b\r\nContent-Type: text/html\r\n\r\n<p>Open it</p>\r\n--b--\r\n"

func TestSMTP(t *testing.T) {
	t.Parallel()
	received := make(chan embedded.Mail, 1)
	server, err := embedded.StartSMTP(t.Context(), embedded.SMTPConfig{
		Accept: func(recipient string) error {
			if recipient == "nobody@example.com" {
				return &embedded.SMTPRefusal{Code: 550, Text: "nobody is here"}
			}
			return nil
		},
		Received: func(m embedded.Mail) error { received <- m; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := smtp.SendMail(server.Address, nil, "a@example.com", []string{"b@example.com"}, []byte(message)); err != nil {
		t.Fatal(err)
	}
	got := <-received
	want := embedded.Mail{From: "a@example.com", To: []string{"b@example.com"}, Data: []byte(strings.ReplaceAll(message, "\r\n", "\n"))}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	parts, err := got.Parts()
	if diff := cmp.Diff(map[string]string{"text/plain": "Open http://127.0.0.1/x?a=b", "text/html": "<p>Open it</p>"}, parts); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if link := got.Link(); link != "http://127.0.0.1/x?a=b" {
		t.Errorf("the link is %q", link)
	}
	err = smtp.SendMail(server.Address, nil, "a@example.com", []string{"nobody@example.com"}, []byte(message))
	if err == nil || !strings.Contains(err.Error(), "nobody is here") {
		t.Errorf("a recipient that is refused: %v", err)
	}
	for range 2 {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}
	if err := smtp.SendMail(server.Address, nil, "a@example.com", []string{"b@example.com"}, []byte(message)); err == nil {
		t.Error("a stopped server takes mail")
	}
}

func TestMail_Malformed(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"", "Subject: x\n\nhello", "Content-Type: multipart/alternative; boundary=b\n\n--b\n\nhello\n"} {
		if parts, err := (embedded.Mail{Data: []byte(data)}).Parts(); err == nil {
			t.Errorf("%q has the parts %v", data, parts)
		}
		if link := (embedded.Mail{Data: []byte(data)}).Link(); link != "" {
			t.Errorf("%q has the link %q", data, link)
		}
	}
}
