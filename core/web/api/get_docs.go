package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"intents.internal/core/web/docs"
)

// docsPolicy lets the page load only its style sheet.
const docsPolicy = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// assets are pages that change only with the program.
type assets struct{ openAPI, docs, style, agents, llms page }

// programAssets are created once, because rendering and compressing takes 0.1 s.
var programAssets = sync.OnceValues(newAssets)

func newAssets() (a assets, err error) {
	html, err := docs.Render(openAPI)
	if err != nil {
		return a, err
	}
	var compact bytes.Buffer // half as long, and a fifth shorter when compressed
	if err := json.Compact(&compact, openAPI); err != nil {
		return a, fmt.Errorf("write openapi.json: %w", err)
	}
	if a.openAPI, err = newAsset("application/json", compact.Bytes()); err != nil {
		return a, err
	}
	if a.docs, err = newAsset("text/html; charset=utf-8", html); err != nil {
		return a, err
	}
	if a.style, err = newAsset("text/css; charset=utf-8", docs.Style); err != nil {
		return a, err
	}
	if a.agents, err = newAsset("text/markdown; charset=utf-8", docs.Agents); err != nil {
		return a, err
	}
	a.llms, err = newAsset("text/plain; charset=utf-8", docs.LLMs)
	return a, err
}

// getDocs answers GET /docs with the OpenAPI description as a page for people.
func (s *Server) getDocs(w http.ResponseWriter, r *http.Request) error {
	header := w.Header()
	header.Set("Content-Security-Policy", docsPolicy)
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Content-Type-Options", "nosniff")
	s.assets.docs.serve(w, r)
	return nil
}

// getAsset answers with a document that is part of the program.
func getAsset(asset page) endpoint {
	return func(w http.ResponseWriter, r *http.Request) error {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		asset.serve(w, r)
		return nil
	}
}
