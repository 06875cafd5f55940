// Command settings writes the reference of every setting into deploy/settings.md, from the Config structs of the services and
// their comments:
//
//	go run ./deploy/settings
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run("."); err != nil {
		fmt.Fprintln(os.Stderr, "settings:", err)
		os.Exit(1)
	}
}

// run updates deploy/settings.md; root is the repository.
func run(root string) error {
	path := filepath.Join(root, "deploy", "settings.md")
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read deploy/settings.md: %w; run this in the root of the repository", err)
	}
	updated, err := Document(root, string(text))
	if err != nil || updated == string(text) {
		return err
	}
	return os.WriteFile(path, []byte(updated), 0o644)
}
