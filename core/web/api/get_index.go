package api

import (
	"net/http"

	"intents.internal/core/web/docs"
	"intents.internal/core/web/route"
)

// patternIndex is the path / alone.
const patternIndex = "GET /{$}"

// index has the ways into the service, for programs that know its address alone.
type index struct {
	Docs       string `json:"docs"`
	Quickstart string `json:"quickstart"`
	LLMs       string `json:"llms"`
	Agents     string `json:"agents"`
	OpenAPI    string `json:"openapi"`
	Health     string `json:"health"`
	// Console is empty where core serves no pages.
	Console string `json:"console,omitempty"`
}

// getIndex answers GET / with links, and leads browsers to the documentation.
func (s *Server) getIndex(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Vary", "Accept")
	if negotiate(r, "application/json", "text/html") == "text/html" {
		w.Header().Set("Location", docs.OverviewPath)
		w.WriteHeader(http.StatusSeeOther)
		return nil
	}
	links := index{
		Docs: s.PublicURL + docs.OverviewPath, Quickstart: s.PublicURL + docs.OverviewPath + "/quickstart", LLMs: s.PublicURL + docs.LLMsPath,
		Agents: s.PublicURL + docs.OverviewPath + "/agents.md", OpenAPI: s.PublicURL + "/openapi.json", Health: s.PublicURL + "/health",
	}
	if s.Console {
		links.Console = s.PublicURL + "/console"
	}
	return route.WriteJSON(w, http.StatusOK, links)
}
