package api

import (
	_ "embed"
	"net/http"
)

//go:generate npm ci --prefix openapi --ignore-scripts --no-audit --no-fund
//go:generate npm run --prefix openapi bundle

// openAPI is generated from openapi/ and the recorded bodies.
//
//go:embed openapi.json
var openAPI []byte

// getOpenAPI answers GET /openapi.json with the OpenAPI description of every public endpoint.
func getOpenAPI(w http.ResponseWriter, r *http.Request) error { return openAPIAsset.serve(w, r) }
