package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"

	"intents.internal/core/web/docs"
)

// docsPolicy lets the page load only its style sheet.
const docsPolicy = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// asset is a public page that changes only with the program. It is made when it is first asked for: to render and to compress all of
// them takes 0.1 s, which a start of core need not wait for.
type asset func() (page, error)

func newAsset(mediaType string, write func() ([]byte, error)) asset {
	return sync.OnceValues(func() (page, error) {
		body, err := write()
		return page{mediaType: mediaType, cacheControl: "public, max-age=300", body: body, etag: etagOf(body)}.pack(), err
	})
}

// The assets of the program.
var (
	openAPIAsset = newAsset("application/json", func() ([]byte, error) {
		var compact bytes.Buffer // half as long, and a fifth shorter when compressed
		err := json.Compact(&compact, openAPI)
		return compact.Bytes(), err
	})
	docsAsset   = newAsset("text/html; charset=utf-8", func() ([]byte, error) { return docs.Render(openAPI) })
	styleAsset  = newAsset("text/css; charset=utf-8", func() ([]byte, error) { return docs.Style, nil })
	agentsAsset = newAsset("text/markdown; charset=utf-8", func() ([]byte, error) { return docs.Agents, nil })
	llmsAsset   = newAsset("text/plain; charset=utf-8", func() ([]byte, error) { return docs.LLMs, nil })
)

// getDocs answers GET /docs with the OpenAPI description as a page for people.
func getDocs(w http.ResponseWriter, r *http.Request) error {
	header := w.Header()
	header.Set("Content-Security-Policy", docsPolicy)
	header.Set("Referrer-Policy", "no-referrer")
	return docsAsset.get(w, r)
}

// get answers with a document whose media type browsers shall not guess.
func (a asset) get(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	return a.serve(w, r)
}

func (a asset) serve(w http.ResponseWriter, r *http.Request) error {
	page, err := a()
	if err != nil {
		return err
	}
	page.serve(w, r)
	return nil
}
