// Package spreadsheet writes the files that people open in a spreadsheet: CSV (RFC 4180) whose cells no spreadsheet takes for a formula.
// It knows nothing of what the cells say.
package spreadsheet

import "strings"

// MediaType is the media type of the files.
const MediaType = "text/csv; charset=utf-8"

// AppendRow appends a row.
func AppendRow(b []byte, cells ...string) []byte {
	for n, cell := range cells {
		if n > 0 {
			b = append(b, ',')
		}
		b = appendCell(b, cell)
	}
	return append(b, '\n')
}

// appendCell appends a cell. One that a spreadsheet would take for a formula gets an apostrophe before it.
func appendCell(b []byte, cell string) []byte {
	formula := cell != "" && strings.IndexByte("=+-@\t\r", cell[0]) >= 0
	if !formula && !strings.ContainsAny(cell, ",\"\r\n") {
		return append(b, cell...)
	}
	b = append(b, '"')
	if formula {
		b = append(b, '\'')
	}
	for at := strings.IndexByte(cell, '"'); at >= 0; at = strings.IndexByte(cell, '"') {
		b = append(append(b, cell[:at+1]...), '"')
		cell = cell[at+1:]
	}
	return append(append(b, cell...), '"')
}
