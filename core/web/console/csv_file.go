package console

import (
	"bytes"
	"encoding/csv"
	"net/http"
	"strconv"
)

// maxCSVRows bounds the rows of one file, and csvBatch those that are read at once.
const maxCSVRows, csvBatch = 10_000, 1_000

// csvFile is a file of a list that a page offers. It is written whole, so that an error can be a page.
type csvFile struct {
	text   bytes.Buffer
	writer *csv.Writer
}

func newCSVFile(columns []string) *csvFile {
	f := &csvFile{}
	f.writer = csv.NewWriter(&f.text)
	f.add(columns...)
	return f
}

// add adds a row, whose cells no spreadsheet runs.
func (f *csvFile) add(cells ...string) {
	inert := make([]string, len(cells))
	for n, cell := range cells {
		inert[n] = inertCell(cell)
	}
	_ = f.writer.Write(inert) // a Buffer takes everything
}

// serve answers with the file.
func (f *csvFile) serve(w http.ResponseWriter, name string) {
	f.writer.Flush()
	header := w.Header()
	header.Set("Content-Type", "text/csv; charset=utf-8")
	header.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	header.Set("Content-Length", strconv.Itoa(f.text.Len()))
	_, _ = w.Write(f.text.Bytes()) // fails only if the client has disconnected
}
