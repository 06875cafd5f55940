package main

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/mail"
	"strings"

	"intents.internal/pkg/testkit/embedded"
)

// printMail prints the recipient and the subject of a mail, and the link in it.
func printMail(out io.Writer) func(embedded.Mail) {
	return func(m embedded.Mail) {
		_, _ = fmt.Fprintf(out, "mail to %s, %q: %s\n", strings.Join(m.To, ", "), subject(m.Data), m.Link())
	}
}

// subject returns the decoded subject of a message, empty if it cannot be read.
func subject(message []byte) string {
	parsed, err := mail.ReadMessage(bytes.NewReader(message))
	if err != nil {
		return ""
	}
	text, err := new(mime.WordDecoder).DecodeHeader(parsed.Header.Get("Subject"))
	if err != nil {
		return ""
	}
	return text
}
