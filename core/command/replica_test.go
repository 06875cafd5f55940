package command_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/wire"
)

// intent is what is looked at of one.
type intent struct{ ID, Status string }

// client is an account's, which asks cores as a gateway does for it.
type client struct {
	t     *testing.T
	owner uuid.UUID
}

// ask sends a request to a core and reads the whole answer.
func (c client) ask(p *process, method, path, body string, header ...string) (status int, tag string, answer []byte) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, "http://"+p.listen+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	for name, value := range map[string]string{
		wire.HeaderGatewaySecret: gatewaySecret, wire.HeaderAccountID: c.owner.String(), wire.HeaderKeyID: uuid.NewString(),
		wire.HeaderKeyEnv: "test", "Content-Type": "application/json",
	} {
		request.Header.Set(name, value)
	}
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	if answer, err = io.ReadAll(response.Body); err != nil {
		c.t.Fatal(err)
	}
	return response.StatusCode, response.Header.Get("ETag"), answer
}

// list reads the whole list, nil where it is what the tag says.
func (c client) list(p *process, tag string) (intents []intent, newTag string) {
	c.t.Helper()
	status, newTag, body := c.ask(p, http.MethodGet, "/v2/transfers", "", "If-None-Match", tag)
	if status == http.StatusNotModified {
		return nil, tag
	}
	if err := json.Unmarshal(body, &intents); err != nil || status != http.StatusOK {
		c.t.Fatalf("list: %d, %v", status, err)
	}
	return intents, newTag
}

// change makes an intent, or cancels one, and returns it as it was acknowledged.
func (c client) change(p *process, path, body string) (changed intent) {
	c.t.Helper()
	status, _, answer := c.ask(p, http.MethodPost, path, body)
	if err := json.Unmarshal(answer, &changed); err != nil || status >= http.StatusBadRequest {
		c.t.Fatalf("POST %s: %d %s", path, status, answer)
	}
	return changed
}

const transferBody = `{"source":{"account":"eip155:11155111:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
	"token":"eip155:11155111:0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238","amount":"5"},
	"destination":{"account":"eip155:11155111:0x70997970C51812dc3A010C7d01b50e0d17dc79C8"}}`

// What one core has acknowledged is in the next list of another, and no tag says otherwise, also where the replica stands
// still.
func TestReplica_WritesOfAnotherCore(t *testing.T) {
	t.Parallel()
	servers := pgtest.NewReplicated(t)
	store := pgtest.Open(t, servers.Primary.URL)
	pgtest.LoadRegistry(t, store)
	one := serve(t, servers.Primary.URL, "CORE_READ_DATABASE_URL="+servers.Replica.URL)
	other := serve(t, servers.Primary.URL, "CORE_READ_DATABASE_URL="+servers.Replica.URL)
	c := client{t, uuid.New()}
	first := c.change(one, "/v2/transfers", transferBody)
	// Lists over 1,000 intents have tags of the account's events.
	pgtest.Exec(t, store, `INSERT INTO transfers SELECT made.* FROM transfers i, generate_series(1, 1200) n,
		jsonb_populate_record(i, jsonb_build_object('id', gen_random_uuid(), 'order_id', sha256(n::text::bytea))) AS made`)
	fromReplica := func() bool {
		response, err := http.Get("http://" + other.ops + "/metrics") //nolint:noctx // go test bounds it
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return !strings.Contains(string(text), `intents_core_list_batches_total{source="replica"} 0`)
	}
	var tag string
	asynctest.Eventually(t, "the replica serves the whole list", func() bool {
		var all []intent
		all, tag = c.list(other, "")
		return len(all) == 1201 && strings.HasPrefix(tag, `W/"e`) && fromReplica()
	})
	if unchanged, _ := c.list(one, tag); unchanged != nil {
		t.Error("a list that has not changed is sent again")
	}

	pgtest.Exec(t, pgtest.OpenAny(t, servers.Replica.URL), `SELECT pg_wal_replay_pause()`)
	made := c.change(one, "/v2/transfers", transferBody)
	cancelled := c.change(other, "/v2/transfers/"+first.ID+"/cancel", "")
	for name, core := range map[string]*process{"one core": one, "the other": other} {
		listed := map[intent]bool{}
		all, _ := c.list(core, tag)
		for _, i := range all {
			listed[i] = true
		}
		if len(all) != 1202 || !listed[made] || !listed[cancelled] {
			t.Errorf("%s lists %d intents; the one made is there: %t, the one cancelled: %t", name, len(all), listed[made], listed[cancelled])
		}
	}
}
