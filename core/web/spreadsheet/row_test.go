package spreadsheet_test

import (
	"bytes"
	"encoding/csv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/web/spreadsheet"
)

func TestAppendRow(t *testing.T) {
	t.Parallel()
	for want, cells := range map[string][]string{
		"a,b\n":                       {"a", "b"},
		",\n":                         {"", ""},
		"\"'=1+1\",\"'+1\",\"'-1\"\n": {"=1+1", "+1", "-1"},
		"\"'@a\",\"'\tb\",1=1\n":      {"@a", "\tb", "1=1"},
		"\"a,b\",\"\"\"\",\"c\nd\"\n": {"a,b", `"`, "c\nd"},
	} {
		if diff := cmp.Diff(want, string(spreadsheet.AppendRow(nil, cells...))); diff != "" {
			t.Errorf("%q (-want +got):\n%s", cells, diff)
		}
	}
}

// What a parser reads of a row are its cells, with an apostrophe before those that begin as a formula does.
func FuzzAppendRow(f *testing.F) {
	f.Add("a", `"=1"`)
	f.Add("=cmd|' /C calc'!A0", "\r\n")
	f.Fuzz(func(t *testing.T, first, second string) {
		row := spreadsheet.AppendRow(nil, first, second, "end")
		if bytes.Contains(row, []byte("\r\n")) {
			return // the parser turns these into one character
		}
		got, err := csv.NewReader(bytes.NewReader(row)).ReadAll()
		if err != nil || len(got) != 1 {
			t.Fatalf("%q is read as %q, %v", row, got, err)
		}
		for n, cell := range []string{first, second} {
			if cell != "" && bytes.IndexByte([]byte("=+-@\t\r"), cell[0]) >= 0 {
				cell = "'" + cell
			}
			if got[0][n] != cell {
				t.Errorf("%q is read as %q", cell, got[0][n])
			}
		}
	})
}
