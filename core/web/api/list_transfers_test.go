package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/testkit/metricstest"
)

func summary(kind string) string {
	arrives := map[string]string{
		"transfer": leg(webtest.BobOnSepolia, webtest.SepoliaUSDC, "5"), "swap": leg(webtest.BobOnSepolia, webtest.SepoliaWETH, "4"), "bridge": leg(webtest.BobOnBase, webtest.BaseUSDC, "4"),
	}[kind]
	return fmt.Sprintf(`{"id":"<id>","type":%q,"status":"created","orderId":"<order id>","createdAt":"<time>","updatedAt":"<time>",
		"metadata":{"chainId":"eip155:11155111"},"environment":"test","source":%s,"destination":%s,
		"deadline":"<time>","reference":null,"labels":{},"batchId":null,"signing":null,"ended":false}`, kind, leg(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5"), arrives)
}

func leg(account, token, amount string) string {
	return fmt.Sprintf(`{"account":%q,"token":%q,"amount":%q}`, account, token, amount)
}

func maskOrderIDs(a webtest.Answer) webtest.Answer {
	entries, _ := a.Body.([]any)
	for _, entry := range entries {
		entry.(map[string]any)["orderId"] = "<order id>"
	}
	return a
}

func TestListTransfers(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, bob := webtest.Keyed(uuid.New(), "test"), webtest.Keyed(uuid.New(), "test")
	for _, request := range []string{webtest.TransferBody, webtest.SwapBody, webtest.BridgeBody, webtest.SwapBody} {
		s.CreateTransfer(t, request, ann...)
		s.CreateTransfer(t, webtest.TransferBody, bob...)
	}
	for query, list := range map[string]string{
		"":               `[` + summary("swap") + `,` + summary("bridge") + `,` + summary("swap") + `,` + summary("transfer") + `]`,
		"?":              `[` + summary("swap") + `,` + summary("bridge") + `,` + summary("swap") + `,` + summary("transfer") + `]`,
		"?type=transfer": `[` + summary("transfer") + `]`,
		"?type=swap":     `[` + summary("swap") + `,` + summary("swap") + `]`,
		"?type=bridge":   `[` + summary("bridge") + `]`,
	} {
		webtest.Same(t, query, webtest.Want(t, 200, list, "Etag", tag, "Cache-Control", fresh), maskOrderIDs(s.Call(t, "GET", "/v2/transfers"+query, "", ann...)))
	}
	webtest.Same(t, "none", webtest.Want(t, 200, `[]`, "Etag", tag, "Cache-Control", fresh), s.Call(t, "GET", "/v2/transfers", "", webtest.Keyed(uuid.New(), "live")...))

	pgtest.Exec(t, s.Store, `UPDATE transfers SET status = 'submitted', hash = '0xabc' WHERE type = 'bridge'`)
	withHash := strings.NewReplacer("created\"", "submitted\"", `"eip155:11155111"`, `"eip155:11155111","hash":"0xabc"`).Replace(summary("bridge"))
	webtest.Same(t, "submitted", webtest.Want(t, 200, `[`+withHash+`]`, "Etag", tag, "Cache-Control", fresh), maskOrderIDs(s.Call(t, "GET", "/v2/transfers?type=bridge", "", ann...)))
}

// A list has the intents of the key's environment unless it asks for others, also on later pages.
func TestListTransfers_Environment(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := uuid.New()
	liveBody := webtest.Body(webtest.AliceOnMainnet, webtest.MainnetUSDC, "5", webtest.BobOnMainnet, "", "", "")
	for range 2 {
		s.CreateTransfer(t, webtest.TransferBody, webtest.Keyed(owner, "test")...)
		s.CreateTransfer(t, liveBody, webtest.Keyed(owner, "live")...)
	}
	environments := func(query string, key []string) (got string) {
		for path := "/v2/transfers?" + query; path != ""; {
			response := s.Send(t, "GET", path, "", key...)
			var list []struct{ Environment string }
			if text := webtest.ReadAll(t, response); json.Unmarshal([]byte(text), &list) != nil {
				t.Fatalf("%s: %d %s", path, response.StatusCode, text)
			}
			for _, one := range list {
				got += one.Environment + " "
			}
			path = strings.TrimSuffix(strings.TrimPrefix(response.Header.Get("Link"), "<"), `>; rel="next"`)
		}
		return strings.TrimSpace(got)
	}
	for query, want := range map[string][2]string{
		"limit=3":                        {"test test", "live live"},
		"environment=test":               {"test test", "test test"},
		"environment=live&type=transfer": {"live live", "live live"},
		"environment=all&limit=3":        {"live test live test", "live test live test"},
	} {
		for n, key := range []string{"test", "live"} {
			if got := environments(query, webtest.Keyed(owner, key)); got != want[n] {
				t.Errorf("a %s key gets for %q: %s, want %s", key, query, got, want[n])
			}
		}
	}
}

// Each parameter is read.
func TestListTransfers_Filters(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := webtest.Keyed(uuid.New(), "test")
	for _, request := range []string{webtest.TransferBody, webtest.SwapBody, webtest.BridgeBody} {
		s.CreateTransfer(t, request, ann...)
	}
	for query, want := range map[string]string{
		"account=" + strings.ToLower(webtest.AliceOnSepolia): "bridge swap transfer",
		"token=" + webtest.SepoliaWETH:                       "swap",
		"destination-chain=eip155:84532":                     "bridge",
		"created-after=9999-12-31T23:59:59Z":                 "",
		"created-before=2026-01-01T00:00:00Z":                "",
		"created-after=1970-01-01T00:00:00Z&account=" + webtest.BobOnBase + "&token=" + webtest.SepoliaUSDC + "&status=created&limit=7": "bridge",
	} {
		var types []string
		list, _ := s.Call(t, "GET", "/v2/transfers?"+query, "", ann...).Body.([]any)
		for _, one := range list {
			types = append(types, one.(map[string]any)["type"].(string))
		}
		if got := strings.Join(types, " "); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}

// multiply makes count more of an account's one intent.
func (s *service) multiply(t *testing.T, count int) {
	t.Helper()
	pgtest.Multiply(t, s.Store, pgtest.LookUp[uuid.UUID](t, s.Store, `SELECT id FROM transfers`), count)
}

func TestListTransfers_Streamed(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := webtest.Keyed(uuid.New(), "test")
	s.CreateTransfer(t, webtest.TransferBody, account...)
	s.multiply(t, 2499)
	response := s.Send(t, "GET", "/v2/transfers", "", account...)
	var list []struct{ ID string }
	if err := json.Unmarshal([]byte(webtest.ReadAll(t, response)), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) != 2500 || response.StatusCode != 200 {
		t.Fatalf("%d, %d intents", response.StatusCode, len(list))
	}
	for i := range list[1:] {
		if list[i].ID <= list[i+1].ID {
			t.Fatalf("intent %d, %s, is not newer than %s", i, list[i].ID, list[i+1].ID)
		}
	}
}

// breaking is a response that calls once when its first bytes leave.
type breaking struct {
	http.ResponseWriter
	once *sync.Once
	call func()
}

func (b breaking) Write(p []byte) (int, error) {
	b.once.Do(b.call)
	return b.ResponseWriter.Write(p)
}

func TestListTransfers_FailureWhileStreaming(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	s := start(t, webtest.MeasuredBy(registry))
	account := webtest.Keyed(uuid.New(), "test")
	s.CreateTransfer(t, webtest.TransferBody, account...)
	s.multiply(t, 2499)
	url := webtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Handler.ServeHTTP(breaking{w, new(sync.Once), func() {
			if _, err := s.Store.Pool().ExecContext(r.Context(), `ALTER TABLE transfers RENAME TO elsewhere`); err != nil {
				t.Error(err)
			}
		}}, r)
	}))
	response := (&service{&webtest.Service{URL: url}}).Send(t, "GET", "/v2/transfers", "", account...)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a list whose second half cannot be read ends with %v after %d bytes", err, len(text))
	}
	if response.StatusCode != 200 || len(text) == 0 || json.Valid(text) {
		t.Errorf("status %d, %d bytes, valid JSON: %t", response.StatusCode, len(text), json.Valid(text))
	}
	if log := s.Log.String(); !strings.Contains(log, `relation \"transfers\" does not exist`) || !strings.Contains(log, `"level":"ERROR"`) {
		t.Errorf("the log does not tell why:\n%s", log)
	}
	if n := metricstest.Values(t, registry); n["intents_core_requests_total GET /v2/transfers cut"] != 1 || n["intents_core_defects_total"] != 1 {
		t.Errorf("a list that was cut is counted as %v", n)
	}
}
