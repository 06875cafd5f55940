package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxListBytes bounds a list. Uniswap's default list has 0.7 MiB.
const maxListBytes = 16 << 20

// readList reads the file of a list, or standard input for -.
func readList(name string) (text []byte, err error) {
	if strings.Contains(name, "://") {
		return nil, fmt.Errorf("%s is a URL and lists are read from files; use: curl -fsSL URL | core tokens import --source URL -", name)
	}
	file := os.Stdin
	if name != "-" {
		if file, err = os.Open(name); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
	}
	if text, err = io.ReadAll(io.LimitReader(file, maxListBytes+1)); err != nil {
		return nil, fmt.Errorf("read %s: %w", file.Name(), err)
	}
	if len(text) > maxListBytes {
		return nil, fmt.Errorf("read %s: it has more than %d MiB; split the list", file.Name(), maxListBytes>>20)
	}
	return text, nil
}
