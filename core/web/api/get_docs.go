package api

import "net/http"

// docsPolicy lets the page load only its style sheet.
const docsPolicy = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// getDocs answers GET /docs with the OpenAPI description as a page for people.
func getDocs(w http.ResponseWriter, r *http.Request) error {
	header := w.Header()
	header.Set("Content-Security-Policy", docsPolicy)
	header.Set("Referrer-Policy", "no-referrer")
	return docsAsset.get(w, r)
}
