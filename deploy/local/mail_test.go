package main

import (
	"bytes"
	"testing"

	"intents.internal/pkg/testkit/embedded"
)

func TestPrintMail(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	printMail(&out)(embedded.Mail{To: []string{"ann@example.com"}, Data: []byte("Subject: =?utf-8?q?Set_a_new_password?=\nContent-Type: multipart/alternative; boundary=b\n\n" +
		"--b\nContent-Type: text/plain\n\nOpen\n\nhttp://127.0.0.1:8080/console/reset-password?token=x\n--b--\n")})
	if got, want := out.String(), "mail to ann@example.com, \"Set a new password\": http://127.0.0.1:8080/console/reset-password?token=x\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
