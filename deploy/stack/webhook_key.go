package stack

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
)

// webhookKeyFile is the file of the key that encrypts the webhooks' signing secrets in the database. Only the user who runs the
// stack can read it. A reset keeps it, because the database of Config.DatabaseURL is kept as well.
const webhookKeyFile = "webhook.key"

// webhookKey returns the stored key in hexadecimal, or creates and stores one.
func webhookKey(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err == nil {
		return strings.TrimSpace(string(text)), nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("read the key of webhooks: %w", err)
	}
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails, see crypto/rand
	text = hex.AppendEncode(nil, key)
	if err := writePrivate(path, append(text, '\n')); err != nil {
		return "", fmt.Errorf("store the key of webhooks: %w", err)
	}
	return string(text), nil
}

// writePrivate replaces a file atomically. Only this user can read it.
func writePrivate(path string, text []byte) error {
	draft := path + ".new"
	if err := os.WriteFile(draft, text, 0o600); err != nil {
		return err
	}
	return os.Rename(draft, path)
}
