package embedded

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"regexp"
)

// Mail is a message that the server accepted.
type Mail struct {
	From string
	To   []string
	// Data are the header and the body, with lines that end in \n.
	Data []byte
	// Encrypted is set if the message came over TLS.
	Encrypted bool
}

// Parts returns the decoded bodies of a multipart message by their media type, such as text/plain. If a type occurs twice, the
// last one is returned.
func (m Mail) Parts() (map[string]string, error) {
	message, err := mail.ReadMessage(bytes.NewReader(m.Data))
	if err != nil {
		return nil, fmt.Errorf("read a mail: %w", err)
	}
	_, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil {
		return nil, fmt.Errorf("read the type of a mail: %w", err)
	}
	parts := map[string]string{}
	for reader := multipart.NewReader(message.Body, parameters["boundary"]); ; {
		part, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read a part of a mail: %w", err)
		}
		media, _, err := mime.ParseMediaType(part.Header.Get("Content-Type"))
		if err != nil {
			return nil, fmt.Errorf("read the type of a part of a mail: %w", err)
		}
		var body io.Reader = part
		if part.Header.Get("Content-Transfer-Encoding") == "quoted-printable" {
			body = quotedprintable.NewReader(part)
		}
		decoded, err := io.ReadAll(body)
		if err != nil {
			return nil, fmt.Errorf("read a part of a mail: %w", err)
		}
		parts[media] = string(decoded)
	}
}

var link = regexp.MustCompile(`https?://\S+`)

// Link returns the first URL of the plain text, empty if there is none.
func (m Mail) Link() string {
	parts, err := m.Parts()
	if err != nil {
		return ""
	}
	return link.FindString(parts["text/plain"])
}
