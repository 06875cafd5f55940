package e2e_test

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"intents.internal/gateway/upstream/coretest"
	"intents.internal/pkg/apikey"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// internalAPI is a core as a gateway sees it, real or standing in, with a usable key and a way to make and to end further ones.
type internalAPI struct {
	t      *testing.T
	client *client
	key    apikey.Key
	make   func() apikey.Key
	revoke func(apikey.Key)
	// seen are the answers so far, with what differs from run to run replaced.
	seen []internalAnswer
}

type internalAnswer struct {
	Case, ContentType string
	Status            int
	HasDate, HasETag  bool
	Body              any
}

// walk asks what gateways ask, and what they must not get away with.
func (c *internalAPI) walk() {
	c.t.Helper()
	known := c.make()
	c.keys(known)
	c.feed(known)
	c.filter()
	c.chains()
	c.usage()
	c.ask("ready", http.MethodGet, wire.PathReady, nil)
	c.ask("no such question", http.MethodGet, "/internal/nothing", nil)
	identity := []string{wire.HeaderRequestID, "a-request", wire.HeaderAccountID, uuid.NewString(), wire.HeaderKeyID, uuid.NewString(), wire.HeaderKeyEnv, "test"}
	c.ask("a client's request, passed on", http.MethodGet, "/v2/transfers", nil, identity...)
	for _, path := range []string{wire.PathVerifyKey, wire.PathKeyChanges, wire.PathKeyFilter, pathChains, wire.PathUsage, wire.PathReady, "/v2/transfers"} {
		method := http.MethodGet
		if path == wire.PathVerifyKey || path == wire.PathUsage {
			method = http.MethodPost
		}
		c.ask("without the secret", method, path, nil, append(identity, wire.HeaderGatewaySecret, "")...)
		c.ask("with another secret", method, path, nil, append(identity, wire.HeaderGatewaySecret, strings.Repeat("x", 40))...)
	}
}

func (c *internalAPI) keys(known apikey.Key) {
	verify := func(name string, body any) { c.ask(name, http.MethodPost, wire.PathVerifyKey, body) }
	verify("a usable key", wire.VerifyKeyRequest{Hash: hashOf(known)})
	verify("an unknown key", wire.VerifyKeyRequest{Hash: hashOf(apikey.New(network.Test))})
	verify("a hash that is too short", wire.VerifyKeyRequest{Hash: "abc"})
	verify("no hash", map[string]any{})
	verify("an unknown member", map[string]any{"hash": hashOf(known), "more": 1})
	verify("no JSON", "{")
	gone := c.make()
	c.revoke(gone)
	verify("a key that was revoked", wire.VerifyKeyRequest{Hash: hashOf(gone)})
}

func (c *internalAPI) feed(known apikey.Key) {
	poll := func(name, query string) answer { return c.ask(name, http.MethodGet, wire.PathKeyChanges+query, nil) }
	cursor := expect[wire.KeyChanges](c.t, poll("where the feed is", "?wait=0s"), 200).Cursor
	poll("nothing has changed", "?wait=0s&after="+cursor)
	poll("nothing changes in time", "?wait=20ms&after="+cursor)
	next := c.change("a key was made", cursor, func() apikey.Key { known = c.make(); return known })
	c.change("a key was revoked", next, func() apikey.Key { c.revoke(known); return known })
	c.change("both are told to an older cursor", cursor, func() apikey.Key { return known })
	poll("no duration", "?wait=soon&after="+cursor)
	poll("too long a wait", "?wait=1m&after="+cursor)
	poll("no cursor of the feed's", "?wait=0s&after=yesterday")
}

// change has a key change and polls until the feed tells of it.
func (c *internalAPI) change(name, cursor string, do func() apikey.Key) (next string) {
	c.t.Helper()
	want := hashOf(do())
	deadline := time.Now().Add(20 * time.Second)
	for time.Now().Before(deadline) {
		a := c.client.do(http.MethodGet, wire.PathKeyChanges+"?wait=400ms&after="+cursor, nil, wire.HeaderGatewaySecret, coretest.Secret.Reveal())
		changes := expect[wire.KeyChanges](c.t, a, 200)
		cursor = changes.Cursor
		if slices.Contains(changes.Hashes, want) {
			c.note(name, a, map[string]any{"cursor": cursor != "", "told": true})
			return cursor
		}
	}
	c.t.Fatalf("%s, and the feed says nothing", name)
	return ""
}

// filter reads the filter of keys, and what the feed tells since its cursor: a key is in one of the two.
func (c *internalAPI) filter() {
	a := c.send(http.MethodGet, wire.PathKeyFilter, nil)
	got := expect[wire.KeyFilter](c.t, a, 200)
	var filter apikey.Filter
	if err := filter.UnmarshalBinary(got.Filter); err != nil {
		c.t.Fatal(err)
	}
	since := expect[wire.KeyChanges](c.t, c.send(http.MethodGet, wire.PathKeyChanges+"?wait=0s&after="+got.Cursor, nil), 200)
	has := func(key apikey.Key) bool { return filter.Has(key.Hash()) || slices.Contains(since.Hashes, hashOf(key)) }
	c.note("the filter of keys", a, map[string]any{
		"cursor": got.Cursor != "", "has the key": has(c.key), "has another": has(apikey.New(network.Live)),
	})
}

// chains reads what all clients get alike, as a gateway does for itself: without a client's identity and request id.
func (c *internalAPI) chains() {
	type chain struct {
		ChainID     string              `json:"chainId"`
		Environment network.Environment `json:"environment"`
	}
	a := c.send(http.MethodGet, pathChains, nil)
	chains := expect[[]chain](c.t, a, 200)
	// The stand-in knows two.
	chains = slices.DeleteFunc(chains, func(e chain) bool { return e.ChainID != "eip155:1" && e.ChainID != "eip155:11155111" })
	slices.SortFunc(chains, func(a, b chain) int { return strings.Compare(a.ChainID, b.ChainID) })
	c.note("the chains", a, chains)
	c.note("how long they are good", a, []string{a.Header.Get("Cache-Control"), a.Header.Get("Vary")})
	c.ask("unchanged chains", http.MethodGet, pathChains, nil, "If-None-Match", a.Header.Get("ETag"))
	c.note("changed chains", c.send(http.MethodGet, pathChains, nil, "If-None-Match", `"another"`), nil)
}

func (c *internalAPI) usage() {
	report := func(name string, change func(report, row map[string]any)) {
		row := map[string]any{
			"keyId": uuid.NewString(), "minute": time.Now().UTC().Truncate(time.Minute), "accepted": 1, "limited": 0, "refused": 0,
			"lastUsedAt": time.Now().UTC(),
		}
		whole := map[string]any{"reportId": uuid.NewString(), "keys": []any{row}}
		change(whole, row)
		c.ask(name, http.MethodPost, wire.PathUsage, whole)
	}
	id := uuid.NewString()
	report("a report", func(r, _ map[string]any) { r["reportId"] = id })
	report("the same report again", func(r, _ map[string]any) { r["reportId"] = id })
	report("a report without an id", func(r, _ map[string]any) { r["reportId"] = "" })
	report("a report without rows", func(r, _ map[string]any) { r["keys"] = []any{} })
	report("a report with too many rows", func(r, row map[string]any) {
		rows := make([]any, wire.MaxUsageRows+1)
		for i := range rows {
			one := maps.Clone(row)
			one["keyId"] = uuid.NewString()
			rows[i] = one
		}
		r["keys"] = rows
	})
	report("half a minute", func(_, row map[string]any) {
		row["minute"] = time.Now().UTC().Truncate(time.Minute).Add(30 * time.Second)
	})
	report("less than nothing", func(_, row map[string]any) { row["accepted"] = -1 })
	report("never used", func(_, row map[string]any) { delete(row, "lastUsedAt") })
	report("a row twice", func(r, row map[string]any) { r["keys"] = []any{row, row} })
	report("a member that nobody knows", func(r, _ map[string]any) { r["more"] = 1 })
}

// ask sends a request and notes the answer.
func (c *internalAPI) ask(name, method, path string, body any, headers ...string) answer {
	c.t.Helper()
	a := c.send(method, path, body, headers...)
	var decoded any
	if len(a.Body) > 0 {
		if err := json.Unmarshal(a.Body, &decoded); err != nil {
			decoded = "no JSON: " + string(a.Body)
		}
	}
	c.note(name+": "+method+" "+strings.SplitN(path, "?", 2)[0], a, decoded)
	return a
}

func (c *internalAPI) send(method, path string, body any, headers ...string) answer {
	c.t.Helper()
	return c.client.do(method, path, body, append([]string{wire.HeaderGatewaySecret, coretest.Secret.Reveal()}, headers...)...)
}

func (c *internalAPI) note(name string, a answer, body any) {
	c.seen = append(c.seen, internalAnswer{
		Case: name, Status: a.Status, ContentType: a.Header.Get("Content-Type"), HasDate: a.Header.Get("Date") != "",
		// Clients' entity tags are passed on and mean nothing to a gateway.
		HasETag: a.Header.Get("ETag") != "" && !strings.HasSuffix(name, "/v2/transfers"),
		Body:    settled(body),
	})
}

var varying = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$|^[0-9a-f]{64}$`)

// settled replaces what differs from run to run, and leaves out what is for people alone.
func settled(value any) any {
	switch v := value.(type) {
	case map[string]any:
		whole := map[string]any{}
		for name, member := range v {
			switch name {
			case "message", "details":
			case "cursor":
				whole[name] = member != ""
			default:
				whole[name] = settled(member)
			}
		}
		return whole
	case []any:
		all := make([]any, len(v))
		for i, element := range v {
			all[i] = settled(element)
		}
		return all
	case string:
		if varying.MatchString(v) {
			return fmt.Sprintf("%d characters", len(v))
		}
	}
	return value
}

func hashOf(key apikey.Key) string {
	hash := key.Hash()
	return hex.EncodeToString(hash[:])
}
