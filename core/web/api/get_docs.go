package api

import (
	"net/http"
	"strings"
	"sync"

	"intents.internal/core/web/docs"
	"intents.internal/core/web/route"
)

// docsPolicy lets the pages load only their style sheet and their script, and send only the search.
const docsPolicy = "default-src 'none'; style-src 'self'; script-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// patternDocsPages are the pages and files below /docs.
const patternDocsPages = "GET " + docs.OverviewPath + "/{page...}"

// docsPages are the documents of /docs by path. They change only with the program and its address, and are made when one is first asked for.
type docsPages func() (map[string]page, error)

func newDocsPages(publicURL string) docsPages {
	return sync.OnceValues(func() (map[string]page, error) {
		documents, err := docs.Render(openAPI, publicURL)
		pages := make(map[string]page, len(documents))
		for path, d := range documents {
			p := page{mediaType: d.MediaType, cache: route.CachedByAll, body: d.Body, etag: etagOf(d.Body)}
			if d.MediaType != docs.MediaTypePackage {
				p = p.pack()
			}
			pages[path] = p
		}
		return pages, err
	})
}

// getDocs answers GET /docs and below with the API's description as pages for people, and what they load.
func (s *Server) getDocs(w http.ResponseWriter, r *http.Request) error {
	pages, err := s.docs()
	if err != nil {
		return err
	}
	found, ok := pages[r.URL.Path]
	if !ok {
		return route.ErrNotFound
	}
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	if strings.HasPrefix(found.mediaType, "text/html") {
		header.Set("Content-Security-Policy", docsPolicy)
		header.Set("Referrer-Policy", "no-referrer")
	}
	found.serve(w, r)
	return nil
}
