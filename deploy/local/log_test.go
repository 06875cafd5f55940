package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLogFilter(t *testing.T) {
	t.Parallel()
	const (
		news = "stack     | building core and gateway\n" +
			"build     | services: 40 packages compiled\n" +
			`core      | {"level":"ERROR","msg":"database down"}` + "\n"
		routine = "postgres  | LOG:  database system is ready to accept connections\n" +
			`gateway-1 | {"level":"INFO","msg":"listening"}` + "\n"
	)
	for _, test := range []struct {
		verbose bool
		want    string
	}{{false, news}, {true, news + routine}} {
		data := t.TempDir()
		var terminal bytes.Buffer
		filter, closeFile, err := openLog(data, &terminal, test.verbose)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(news + routine) {
			if _, err := fmt.Fprint(filter, line); err != nil {
				t.Fatal(err)
			}
		}
		if err := closeFile(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, terminal.String()); diff != "" {
			t.Errorf("the terminal (-want +got):\n%s", diff)
		}
		text, err := os.ReadFile(filepath.Join(data, "log"))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(news+routine, string(text)); diff != "" {
			t.Errorf("the file (-want +got):\n%s", diff)
		}
	}
}
