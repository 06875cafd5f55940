package faults_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"
)

// mustList pages through the account's intents by cursor, newest first, and holds them to what the workload was told: each once,
// and the order of the pages is that of the bare list.
func (c *workload) mustList(t *testing.T) {
	t.Helper()
	var paged []string
	for path := "/v2/transfers?limit=100"; path != ""; {
		var page []string
		page, path = c.list(t, path)
		paged = append(paged, page...)
	}
	bare, _ := c.list(t, "/v2/transfers")
	if !slices.Equal(paged, bare) {
		t.Errorf("%d intents by pages, %d in the bare list, or another order", len(paged), len(bare))
	}
	listed := map[string]bool{}
	for _, id := range paged {
		if listed[id] {
			t.Errorf("%s is listed twice", id)
		}
		listed[id] = true
	}
	for _, id := range c.acknowledged {
		if !listed[id] {
			t.Errorf("%s was acknowledged and is not listed", id)
		}
	}
}

// list gives the ids at a path and the path of the next page, empty after the last.
func (c *workload) list(t *testing.T, path string) (ids []string, next string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.fleet[0].url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Api-Key", c.keys[0])
	response, err := (&http.Client{Transport: direct.Transport, Timeout: time.Minute}).Do(request) // tens of thousands on a busy machine
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var page []struct{ ID string }
	if err := json.NewDecoder(response.Body).Decode(&page); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("list %s: %d %v", path, response.StatusCode, err)
	}
	for _, one := range page {
		ids = append(ids, one.ID)
	}
	if link := response.Header.Get("Link"); link != "" {
		next = link[1:slices.Index([]byte(link), '>')]
	}
	return ids, next
}
