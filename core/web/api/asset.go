package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"

	"intents.internal/core/web/docs"
	"intents.internal/core/web/route"
)

// asset is a public page that changes only with the program. It is made when it is first asked for, so that a start of core does not wait
// for the tenths of a second that all of them take.
type asset func() (page, error)

func newAsset(mediaType string, write func() ([]byte, error)) asset {
	return sync.OnceValues(func() (page, error) {
		body, err := write()
		return page{mediaType: mediaType, cache: route.CachedByAll, body: body, etag: etagOf(body)}.pack(), err
	})
}

// The assets of the program.
var (
	openAPIAsset = newAsset("application/json", func() ([]byte, error) {
		var compact bytes.Buffer // half as long, and a fifth shorter when compressed
		err := json.Compact(&compact, openAPI)
		return compact.Bytes(), err
	})
	llmsAsset = newAsset("text/plain; charset=utf-8", func() ([]byte, error) { return docs.LLMs, nil })
)

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
