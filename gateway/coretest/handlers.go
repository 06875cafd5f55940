package coretest

import (
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"intents.internal/pkg/apikey"
	"intents.internal/pkg/wire"
)

func (c *Core) verifyKey(w http.ResponseWriter, r *http.Request) {
	c.LookUps.Add(1)
	var request wire.VerifyKeyRequest
	err := decode(r, &request)
	if hash, malformed := hex.DecodeString(request.Hash); err != nil || malformed != nil || len(hash) != len(apikey.Hash{}) {
		refuse(w, http.StatusBadRequest, wire.InvalidRequest)
		return
	}
	c.mu.Lock()
	key, usable := c.keys[request.Hash]
	c.mu.Unlock()
	if c.BeforeVerdict != nil {
		c.BeforeVerdict()
	}
	switch {
	case c.VerifyDown.Load():
		refuse(w, http.StatusServiceUnavailable, wire.ServiceUnavailable)
	case !usable || key.ExpiresAt != nil && !time.Now().Before(*key.ExpiresAt):
		refuse(w, http.StatusNotFound, wire.InvalidAPIKey)
	default:
		answer(w, key)
	}
}

func (c *Core) keyChanges(w http.ResponseWriter, r *http.Request) {
	wait, err := time.ParseDuration(r.FormValue("wait"))
	if err != nil || wait > 500*time.Millisecond {
		refuse(w, http.StatusBadRequest, wire.InvalidRequest)
		return
	}
	if c.FeedDown.Load() {
		refuse(w, http.StatusServiceUnavailable, wire.ServiceUnavailable)
		return
	}
	c.FeedWait.Store(int64(wait))
	if wait == 0 {
		c.PromptPolls.Add(1)
		<-time.After(promptPause)
	}
	after := r.FormValue("after")
	c.mu.Lock()
	from, err := strconv.Atoi(after)
	if after == "" {
		from = len(c.changes)
	} else if err != nil || from < c.expired || from > len(c.changes) {
		c.mu.Unlock()
		refuse(w, http.StatusGone, wire.CursorExpired)
		return
	}
	news, known := c.news, len(c.changes)
	c.mu.Unlock()
	if after != "" && from == known {
		select {
		case <-news:
		case <-time.After(wait):
		case <-r.Context().Done():
			return
		}
	}
	c.mu.Lock()
	changes := wire.KeyChanges{Cursor: strconv.Itoa(len(c.changes)), Hashes: c.changes[from:]}
	c.mu.Unlock()
	if c.BeforeChanges != nil {
		c.BeforeChanges(wait)
	}
	answer(w, changes)
}

func (c *Core) keyFilter(w http.ResponseWriter, _ *http.Request) {
	if c.FilterDown.Load() {
		refuse(w, http.StatusServiceUnavailable, wire.ServiceUnavailable)
		return
	}
	c.Filters.Add(1)
	c.mu.Lock()
	cursor, filter := strconv.Itoa(len(c.changes)), c.Filter
	if filter == nil {
		filter = apikey.NewFilter(len(c.keys) + 1000)
		for text := range c.keys {
			var hash apikey.Hash
			_, _ = hex.Decode(hash[:], []byte(text)) // it is one
			filter.Add(hash)
		}
	}
	c.mu.Unlock()
	binary, _ := filter.MarshalBinary() // which does not fail
	answer(w, wire.KeyFilter{Filter: binary, Cursor: cursor})
}

// chains has no entity tag: the gateway must not answer clients from it, whose requests are to be recorded.
func (c *Core) chains(w http.ResponseWriter, _ *http.Request) {
	if c.ChainsDown.Load() {
		refuse(w, http.StatusServiceUnavailable, wire.ServiceUnavailable)
		return
	}
	answer(w, json.RawMessage(`[{"chainId":"eip155:1","environment":"live"},{"chainId":"eip155:11155111","environment":"test"}]`))
}

func (c *Core) ready(w http.ResponseWriter, _ *http.Request) {
	if c.Draining.Load() {
		refuse(w, http.StatusServiceUnavailable, wire.ServiceUnavailable)
		return
	}
	w.Header().Set(wire.HeaderBatch, wire.BatchVersion)
	w.WriteHeader(http.StatusNoContent)
}

// decode reads a body as strictly as core does.
func decode(r *http.Request, into any) error {
	body := json.NewDecoder(r.Body)
	body.DisallowUnknownFields()
	return body.Decode(into)
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

func refuse(w http.ResponseWriter, status int, code wire.Code) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(wire.Error{Code: code, Message: "The stand-in says so."})
}
