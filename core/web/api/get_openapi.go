package api

import (
	_ "embed"
	"net/http"
)

//go:embed openapi.json
var openAPI []byte

// getOpenAPI answers GET /openapi.json with the OpenAPI description of every public endpoint.
func (s *Server) getOpenAPI(w http.ResponseWriter, r *http.Request) error {
	s.assets.openAPI.serve(w, r)
	return nil
}
