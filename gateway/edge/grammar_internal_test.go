package edge

import (
	"bytes"
	"testing"
)

func TestIsFieldValue(t *testing.T) {
	t.Parallel()
	for length := range 20 {
		for at := range length {
			for c := range 256 {
				value := bytes.Repeat([]byte{'a'}, length)
				value[at] = byte(c)
				want := c == '\t' || c >= ' ' && c != 0x7f
				if got := isFieldValue(value); got != want {
					t.Fatalf("%q: %t, want %t", value, got, want)
				}
			}
		}
	}
}

func TestIsFieldValue_ControlBeforeTab(t *testing.T) {
	t.Parallel()
	if isFieldValue([]byte("12345678\t\x012345678")) || isFieldValue([]byte("\t2345678\x7f2345678")) || !isFieldValue([]byte("12\t45678\t2345678")) {
		t.Error("a tab hides a control character, or is rejected")
	}
}
