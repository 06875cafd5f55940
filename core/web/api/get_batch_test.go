package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/transfer"
	"intents.internal/core/watch/watched"
	"intents.internal/core/web/webtest"
)

const noBatch = "The account has no such batch in the environment of this key."

func TestGetBatch(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := webtest.Keyed(uuid.New(), "test")
	made, _ := s.createBatch(t, batchOf(webtest.TransferBody, webtest.BridgeBody, webtest.TransferBody), withKey("payroll", account)...)
	s.Call(t, "POST", "/v2/transfers/"+made.ids()[1]+"/cancel", "", account...)
	got := s.Example(t, "a batch", "GET", "/v2/batches/"+made.ID, "", account...).Body.(map[string]any)
	if diff := cmp.Diff(map[string]any{"created": 2.0, "cancelled": 1.0}, got["statuses"]); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	order := func(status string) (types []any) {
		for _, one := range got["transfers"].([]any) {
			if one.(map[string]any)["status"] == status {
				types = append(types, one.(map[string]any)["type"])
			}
		}
		return types
	}
	if diff := cmp.Diff([]any{"transfer", "transfer"}, order("created")); diff != "" || len(order("cancelled")) != 1 {
		t.Errorf("the intents (-want +got):\n%s %v", diff, got)
	}

	missing := webtest.Refused(t, 404, "BATCH_NOT_FOUND", noBatch)
	for name, c := range map[string]struct {
		id     string
		header []string
	}{
		"another account's":            {made.ID, webtest.Keyed(uuid.New(), "test")},
		"of the other environment":     {made.ID, append(slices.Clone(account), "X-Key-Env", "live")},
		"an unknown id":                {uuid.NewString(), account},
		"no id":                        {"x", account},
		"an id that is spelled in URN": {"urn:uuid:" + made.ID, account},
	} {
		webtest.Same(t, name, missing, s.Call(t, "GET", "/v2/batches/"+c.id, "", c.header...))
		webtest.Same(t, name+", calls", missing, s.Call(t, "GET", "/v2/batches/"+c.id+"/calls?max-calls=1", "", c.header...))
		webtest.Same(t, name+", transaction", missing, s.Call(t, "POST", "/v2/batches/"+c.id+"/transaction", `{`, c.header...))
	}
	webtest.Same(t, "query", webtest.Invalid(t, "limit", "is not a known parameter"), s.Call(t, "GET", "/v2/batches/"+made.ID+"?limit=1", "", account...))
}

func TestGetBatchCalls(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := webtest.Keyed(uuid.New(), "test")
	native := webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaETH, "5", webtest.BobOnSepolia, "", "", "")
	made, _ := s.createBatch(t, batchOf(webtest.TransferBody, webtest.BridgeBody, native, webtest.BridgeBody, webtest.TransferBody), withKey("payroll", account)...)
	s.Call(t, "POST", "/v2/transfers/"+made.ids()[4]+"/transaction", reportOf(txHash("a")), account...)
	s.Example(t, "one signature", "GET", "/v2/batches/"+made.ID+"/calls", "", account...)

	ids := made.ids()
	for most, want := range map[int][][]string{ // an approval and two openings are three calls
		2: {{ids[0]}, {ids[1]}, {ids[3]}}, 3: {{ids[0], ids[1]}, {ids[3]}}, 4: {{ids[0], ids[1], ids[3]}}, 200: {{ids[0], ids[1], ids[3]}},
	} {
		response := s.Send(t, "GET", fmt.Sprintf("/v2/batches/%s/calls?max-calls=%d", made.ID, most), "", account...)
		var got struct {
			Requests []struct {
				Transfers []string
				Calls     struct{ Calls []struct{ To string } }
			}
			Excluded []struct{ ID, Reason string }
		}
		pgtest.Must(t, json.Unmarshal([]byte(webtest.ReadAll(t, response)), &got))
		var paid [][]string
		for _, request := range got.Requests {
			paid = append(paid, request.Transfers)
			if len(request.Calls.Calls) > most {
				t.Errorf("at most %d: %d calls", most, len(request.Calls.Calls))
			}
		}
		if diff := cmp.Diff(want, paid); diff != "" {
			t.Errorf("at most %d calls (-want +got):\n%s", most, diff)
		}
		if diff := cmp.Diff([]struct{ ID, Reason string }{{ids[2], "NATIVE"}, {ids[4], "STATUS"}}, got.Excluded); diff != "" {
			t.Errorf("excluded (-want +got):\n%s", diff)
		}
	}
	for _, wrong := range []string{"1", "201", "01", "x"} {
		webtest.Same(t, wrong, webtest.Invalid(t, "max-calls", "must be a whole number from 2 to 200"), s.Call(t, "GET", "/v2/batches/"+made.ID+"/calls?max-calls="+wrong, "", account...))
	}
}

func TestReportBatch(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := uuid.New()
	account := webtest.Keyed(owner, "test")
	fromBob := webtest.Body(webtest.BobOnSepolia, webtest.SepoliaUSDC, "5", webtest.AliceOnSepolia, "", "", "")
	made, _ := s.createBatch(t, batchOf(webtest.TransferBody, webtest.TransferBody, fromBob), withKey("payroll", account)...)
	path, ids := "/v2/batches/"+made.ID+"/transaction", made.ids()
	named := func(hash string, ids ...string) string {
		return fmt.Sprintf(`{"hash":%q,"transfers":["%s"]}`, hash, strings.Join(ids, `","`))
	}
	webtest.Same(t, "several accounts", webtest.Refused(t, 422, "BATCH_NOT_UNIFORM",
		"The transfers of this batch have several source accounts, and one transaction pays from one: name those that it has paid for in transfers."),
		s.Call(t, "POST", path, reportOf(txHash("a")), account...))
	const member, rule = "must be the id of a transfer of this batch", "must be a transaction hash: 0x and 64 hexadecimal digits"
	for body, want := range map[string]webtest.Answer{
		`{}`:                                     webtest.Invalid(t, "/hash", "is required"),
		named("0x1", ids[0]):                     webtest.Invalid(t, "/hash", rule),
		named("0x1", uuid.NewString()):           webtest.Invalid(t, "/hash", rule, "/transfers/0", member),
		named(txHash("a"), ids[0], ids[0]):       webtest.Invalid(t, "/transfers/1", "is given twice"),
		`{"hash":"0x1","transfers":[]}`:          webtest.Invalid(t, "/hash", rule, "/transfers", "must have 1 to 100 ids"),
		`{"hash":"` + txHash("a") + `","a":1}`:   webtest.Invalid(t, "/a", "is not a known field"),
		`{"hash":"` + txHash("a") + `","hash":1`: webtest.Invalid(t, "/hash", "is not valid JSON: duplicate object member name"),
	} {
		webtest.Same(t, body, want, s.Call(t, "POST", path, body, account...))
	}
	got := s.Example(t, "two of three", "POST", path, named(txHash("a"), ids[1], ids[0]), account...)
	if diff := cmp.Diff(map[string]any{"submitted": 2.0, "created": 1.0}, got.Body.(map[string]any)["statuses"]); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
	webtest.Same(t, "again", got, s.Call(t, "POST", path, named(txHash("a"), ids[0], ids[1]), account...))
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM transactions WHERE reported AND state = 'pending' AND role = 'send'`); n != 2 {
		t.Errorf("%d attempts of two", n)
	}

	// What one of them cannot have, none gets. Places are those in the batch.
	s.observe(t, owner, "/v2/transfers/"+ids[1], watched.Progress{}, transactionOn(sepolia, transfer.RoleSend, "a", 7))
	conflict := webtest.Detailed(webtest.Refused(t, 409, "STATUS_CONFLICT", "The status of a transfer does not allow this, so none was changed; see details.failures."), "failures",
		[]any{map[string]any{"index": 1.0, "code": "STATUS_CONFLICT", "message": "Another transaction has carried this intent; read it again." +
			" The hash of a user operation is no transaction hash: report the transaction that its bundler sent."}})
	webtest.Same(t, "one is confirmed", conflict, s.Example(t, "one is confirmed", "POST", path, named(txHash("b"), ids[1], ids[0]), account...))
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM transactions WHERE encode(hash, 'hex') = $1`, strings.Repeat("b", 64)); n != 0 {
		t.Errorf("%d attempts of a refused report", n)
	}
}
