// Package golden compares values with recorded ones, which the repository keeps in testdata folders.
package golden

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Updates is true where UPDATE_GOLDEN is set: tests then write what they compare otherwise.
func Updates() bool { return os.Getenv("UPDATE_GOLDEN") != "" }

// Encode returns the indented JSON of a value, as files have it.
func Encode(value any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(value)
	return out.Bytes(), err
}

// JSON fails the test if the file does not have the value.
func JSON(t *testing.T, file string, value any) {
	t.Helper()
	got, err := Encode(value)
	if err != nil {
		t.Fatal(err)
	}
	if Updates() {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs (-want +got); if the new value is right, run the test with UPDATE_GOLDEN=1\n%s", file, cmp.Diff(string(want), string(got)))
	}
}
