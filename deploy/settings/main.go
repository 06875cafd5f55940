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

// run brings the reference up to date; root is the repository.
func run(root string) error {
	path := filepath.Join(root, "deploy", "settings.md")
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("run this at the top of the repository: %w", err)
	}
	fresh, err := Document(root, string(text))
	if err != nil || fresh == string(text) {
		return err
	}
	return os.WriteFile(path, []byte(fresh), 0o644)
}
