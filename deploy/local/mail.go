package main

import (
	"fmt"
	"io"
	"strings"

	"intents.internal/pkg/embedded"
)

// printMail prints the recipient of a mail and the link in it.
func printMail(out io.Writer) func(embedded.Mail) {
	return func(m embedded.Mail) {
		_, _ = fmt.Fprintf(out, "mail to %s: %s\n", strings.Join(m.To, ", "), m.Link())
	}
}
