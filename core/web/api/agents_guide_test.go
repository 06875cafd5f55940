package api_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/quotes/provider/providertest"
	"intents.internal/core/web/docs"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// The requests of the guide for agents, in its order, succeed, and it names nothing that the API does not have.

// guideRequest is a block of the guide: the method and path behind ```json, then the body.
var guideRequest = regexp.MustCompile("(?s)```json ([A-Z]+) (\\S+)\n(.*?)```")

func TestAgentsGuide_Requests(t *testing.T) {
	t.Parallel()
	s := start(t, quoting(t, providertest.Start(t, "solver", network.Test)))
	key := webtest.Keyed(uuid.New(), "test")
	quote, transfer, sent := "", "", 0
	for _, block := range guideRequest.FindAllStringSubmatch(string(docs.Agents), -1) {
		path := strings.Replace(block[2], "{id}", transfer, 1)
		header := append(slices.Clone(key), "Idempotency-Key", uuid.NewString()) // as the guide asks for
		response := s.Send(t, block[1], path, strings.Replace(block[3], "QUOTE", quote, 1), header...)
		text := webtest.ReadAll(t, response)
		var got struct {
			ID     string
			Quotes []struct{ ID string }
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || response.StatusCode >= 300 {
			t.Fatalf("%s %s: %d %s", block[1], path, response.StatusCode, text)
		}
		if got.ID != "" {
			transfer = got.ID
		}
		if len(got.Quotes) > 0 {
			quote = got.Quotes[0].ID
		}
		sent++
	}
	if sent != 6 || transfer == "" || quote == "" {
		t.Errorf("%d requests, quote %q, transfer %q", sent, quote, transfer)
	}
}

func TestAgentsGuide_Names(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths      map[string]map[string]any
		Components struct {
			Schemas struct {
				ErrorCode, TransferStatus struct{ Enum []string }
			}
		}
	}
	if err := json.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	guide := string(docs.Agents)
	paths := regexp.MustCompile("(GET|POST) (/v2/[^ ?`\n]+)").FindAllStringSubmatch(guide, -1)
	for _, named := range paths {
		if document.Paths[named[2]][strings.ToLower(named[1])] == nil {
			t.Errorf("%s is no operation", named[0])
		}
	}
	codes := regexp.MustCompile("`([A-Z]+(?:_[A-Z]+)+)`").FindAllStringSubmatch(guide, -1)
	for _, named := range codes {
		if !slices.Contains(document.Components.Schemas.ErrorCode.Enum, named[1]) {
			t.Errorf("%s is no code", named[1])
		}
	}
	for _, status := range document.Components.Schemas.TransferStatus.Enum {
		if !strings.Contains(guide, "`"+status+"`") {
			t.Errorf("the status %s is left out", status)
		}
	}
	if len(paths) < 9 || len(codes) < 3 || len(document.Components.Schemas.TransferStatus.Enum) != 8 {
		t.Errorf("%d paths and %d codes are named", len(paths), len(codes))
	}
	for _, link := range regexp.MustCompile(`\]\((/[^)]*)\)`).FindAllStringSubmatch(string(docs.LLMs)+guide, -1) {
		if !slices.Contains(wire.DocsPages, link[1]) && document.Paths[link[1]] == nil {
			t.Errorf("%s leads nowhere", link[1])
		}
	}
}
