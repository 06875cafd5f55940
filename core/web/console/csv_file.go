package console

import (
	"net/http"
	"strconv"

	"intents.internal/core/web/spreadsheet"
)

// maxCSVRows bounds the rows of one file, and csvBatch those that are read at once.
const maxCSVRows, csvBatch = 10_000, 1_000

// csvFile is a file of a list that a page offers. It is written whole, so that an error can be a page.
type csvFile struct{ text []byte }

func newCSVFile(columns []string) *csvFile {
	f := &csvFile{}
	f.add(columns...)
	return f
}

func (f *csvFile) add(cells ...string) { f.text = spreadsheet.AppendRow(f.text, cells...) }

// serve answers with the file.
func (f *csvFile) serve(w http.ResponseWriter, name string) {
	header := w.Header()
	header.Set("Content-Type", spreadsheet.MediaType)
	header.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	header.Set("Content-Length", strconv.Itoa(len(f.text)))
	_, _ = w.Write(f.text) // fails only if the client has disconnected
}
