package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
)

// Every operation answers as documented, the transport sees to that; here is that each status can be had.
func TestOperations_EveryStatus(t *testing.T) {
	t.Parallel()
	key := freshKey(t)
	tester, anyone, browser := apiClient(t, key), apiClient(t, ""), browserClient(t)
	valid := body(on(11155111, alice), on(11155111, usdc), "1", on(11155111, bob), "", "")
	made := expect[record](t, tester.do(http.MethodPost, "/v2/transfers", valid, "Idempotency-Key", "once"), 201)
	spelled := body(on(11155111, alice), on(11155111, usdc), "1", on(11155111, bob), on(11155111, usdc), "1")
	if again := tester.do(http.MethodPost, "/v2/transfers", spelled, "Idempotency-Key", "once"); again.Status != 201 || again.Header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("the same request: %d %v %s", again.Status, again.Header, again.Body)
	}
	signUp := map[string]any{"name": "", "email": "operations@example.com", "password": "correct horse battery"}
	signIn := map[string]any{"email": "operations@example.com", "password": "correct horse battery"}
	wrongPassword := map[string]any{"email": "operations@example.com", "password": "wrong horse battery"}
	somebody := newPerson(t, running.Env().GatewayURL)
	elsewhere := []string{"Origin", "https://elsewhere.example", "Sec-Fetch-Site", "cross-site"}
	at := "/v2/transfers/" + made.ID
	nowhere := "/v2/transfers/01a1fc5d-1017-7f12-bb7c-34456ca20bc2"
	for _, c := range []struct {
		who    *client
		method string
		path   string
		body   any
		status int
		header []string
	}{
		{anyone, "GET", "/v2/health", nil, 204, nil},
		{anyone, "HEAD", "/health", nil, 204, nil},
		{anyone, "POST", "/health", nil, 405, nil},
		{anyone, "GET", "/v2/openapi.json", nil, 200, []string{"Accept-Encoding", "gzip"}},
		{anyone, "GET", "/openapi.json", nil, 304, []string{"If-None-Match", "*"}},
		{anyone, "GET", "/docs", nil, 200, nil},
		{anyone, "GET", "/docs", nil, 304, []string{"If-None-Match", "*"}},
		{anyone, "HEAD", "/docs", nil, 200, nil},
		{tester, "GET", "/v2/tokens", nil, 200, []string{"Accept-Encoding", "zstd"}},
		{tester, "GET", "/v2/tokens", nil, 304, []string{"If-None-Match", "*"}},
		{tester, "GET", "/v2/tokens?chain-id=eip155:424242424", nil, 200, nil},
		{tester, "GET", "/v2/chains", nil, 200, []string{"Accept-Encoding", "gzip"}},
		{tester, "GET", "/v2/chains", nil, 304, []string{"If-None-Match", "*"}},
		{tester, "GET", "/v2/chains?page=2", nil, 400, nil},
		{tester, "GET", "/v2/transfers?limit=1&status=created,cancelled&chain-id=eip155:11155111", nil, 200, nil},
		{tester, "GET", "/v2/transfers?order-id=" + made.OrderID + "&updated-since=2026-01-01T00:00:00Z", nil, 200, nil},
		{tester, "GET", "/v2/transfers", nil, 304, []string{"If-None-Match", "*"}},
		{tester, "GET", "/v2/transfers?limit=0&cursor=x&status=gone", nil, 400, nil},
		{tester, "POST", "/v2/transfers", valid, 201, []string{"Idempotency-Key", `"once"`}},
		{tester, "POST", "/v2/transfers", body(on(11155111, alice), on(11155111, usdc), "2", on(11155111, bob), "", ""), 422, []string{"Idempotency-Key", "once"}},
		{tester, "POST", "/v2/transfers", valid, 400, []string{"Idempotency-Key", ""}},
		{tester, "POST", "/v2/transfers", valid, 415, []string{"Content-Type", "text/plain"}},
		{tester, "POST", "/v2/transfers", valid, 415, []string{"Content-Encoding", "gzip"}},
		{tester, "GET", at + "?full=1", nil, 400, nil},
		{tester, "POST", at + "/cancel", nil, 200, nil},
		{tester, "POST", at + "/cancel", nil, 200, nil},
		{tester, "POST", at + "/cancel?now=1", nil, 400, nil},
		{tester, "POST", nowhere + "/cancel", nil, 404, nil},
		{anyone, "POST", at + "/cancel", nil, 401, nil},
		{tester, "GET", at + "/cancel", nil, 405, nil},
		{browser, "POST", "/auth/sign-up/email", signUp, 200, nil},
		{browser, "POST", "/auth/sign-up/email", signUp, 200, nil},
		{browser, "POST", "/auth/sign-in/email", signIn, 401, nil},
		{browser, "POST", "/auth/sign-up/email", signUp, 403, elsewhere},
		{browser, "POST", "/auth/sign-up/email", "x", 415, []string{"Content-Type", "text/plain"}},
		{browser, "POST", "/auth/sign-up/email", `"` + strings.Repeat("x", 17<<10) + `"`, 413, nil},
		{browser, "POST", "/auth/sign-in/email", wrongPassword, 401, nil},
		{browser, "POST", "/auth/sign-in/email", signUp, 400, nil},
		{browser, "GET", "/auth/get-session", nil, 200, nil},
		{browser, "GET", "/auth/sign-out", nil, 405, nil},
		{somebody.client, "POST", "/auth/api-key/create", map[string]any{"name": "x", "userId": "y"}, 400, nil},
		{somebody.client, "POST", "/auth/api-key/update", map[string]any{"keyId": "x", "name": "y"}, 404, nil},
		{somebody.client, "POST", "/auth/api-key/delete", map[string]any{"keyId": "x"}, 404, nil},
		{somebody.client, "GET", "/auth/api-key/list", nil, 200, nil},
		{somebody.client, "POST", "/auth/sign-out", nil, 200, nil},
	} {
		if a := c.who.do(c.method, c.path, c.body, c.header...); a.Status != c.status {
			t.Errorf("%s %s %v: %d %s, want %d", c.method, c.path, c.header, a.Status, a.Body, c.status)
		}
	}
}

// A conflict is what a client sees that cancels after the deadline.
func TestCancelTransfer_AfterDeadline(t *testing.T) {
	t.Parallel()
	tester := apiClient(t, freshKey(t))
	made := expect[record](t, tester.do(http.MethodPost, "/v2/transfers",
		body(on(11155111, alice), on(11155111, usdc), "1", on(11155111, bob), "", "")), 201)
	execute(t, "UPDATE transfers SET status = 'expired' WHERE id = $1", made.ID)
	if got := expect[failure](t, tester.do(http.MethodPost, "/v2/transfers/"+made.ID+"/cancel", nil), 409); got.Code != "STATUS_CONFLICT" {
		t.Errorf("cancelled too late: %+v", got)
	}
}

// execute changes the database behind core's back.
func execute(t *testing.T, sql string, values ...any) {
	t.Helper()
	if err := executeOn(t.Context(), running.Env().DatabaseURL, sql, values...); err != nil {
		t.Fatal(err)
	}
}

func executeOn(ctx context.Context, databaseURL, sql string, values ...any) error {
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, sql, values...)
	return err
}

// queryRow reads the one value that sql selects from a stack's database.
func queryRow(t *testing.T, databaseURL string, into any, sql string, values ...any) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := conn.QueryRow(t.Context(), sql, values...).Scan(into); err != nil {
		t.Fatal(err)
	}
}

// A list that is streamed is tagged too, and is 304 until something changes.
func TestListTransfers_Streamed(t *testing.T) {
	t.Parallel()
	tester := apiClient(t, freshKey(t))
	request := body(on(11155111, alice), on(11155111, usdc), "1", on(11155111, bob), "", "")
	made := expect[record](t, tester.do(http.MethodPost, "/v2/transfers", request), 201)
	execute(t, `INSERT INTO transfers SELECT (jsonb_populate_record(i, jsonb_build_object(
		'id', (lpad(to_hex(1700000000000 - n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid,
		'order_id', sha256(n::text::bytea)))).* FROM transfers i, generate_series(1, 1200) n WHERE i.id = $1`, made.ID)
	for _, accepted := range []string{"identity", "gzip", "zstd"} {
		long := tester.do(http.MethodGet, "/v2/transfers", nil, "Accept-Encoding", accepted)
		tag := long.Header.Get("ETag")
		if long.Status != 200 || long.Header.Get("Link") != "" || !strings.HasPrefix(tag, `W/"e2.`) {
			t.Errorf("%s: %d, headers %v", accepted, long.Status, long.Header)
		}
		if a := tester.do(http.MethodGet, "/v2/transfers", nil, "If-None-Match", tag); a.Status != 304 {
			t.Errorf("the same list again: %d", a.Status)
		}
		expect[record](t, tester.do(http.MethodPost, "/v2/transfers", request), 201)
		if a := tester.do(http.MethodGet, "/v2/transfers", nil, "If-None-Match", tag); a.Status != 200 {
			t.Errorf("the list with one more: %d", a.Status)
		}
	}
}

// Pages follow each other by Link until the last.
func TestListTransfers_PagesByLink(t *testing.T) {
	t.Parallel()
	tester := apiClient(t, freshKey(t))
	var want, got []string
	for range 3 {
		made := expect[record](t, tester.do(http.MethodPost, "/v2/transfers",
			body(on(11155111, alice), on(11155111, usdc), "1", on(11155111, bob), "", "")), 201)
		want = append([]string{made.ID}, want...)
	}
	for next := "/v2/transfers?limit=2"; next != ""; {
		a := tester.do(http.MethodGet, next, nil)
		for _, one := range expect[[]record](t, a, 200) {
			got = append(got, one.ID)
		}
		link, more := strings.CutSuffix(a.Header.Get("Link"), `>; rel="next"`)
		if next = strings.TrimPrefix(link, "<"); !more {
			next = ""
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The service hands out the very document that its answers are held to.
func TestOpenAPI_Served(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(openAPIFile)
	if err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := json.Compact(&want, text); err != nil {
		t.Fatal(err)
	}
	if got := apiClient(t, "").do(http.MethodGet, "/openapi.json", nil); string(got.Body) != want.String() {
		t.Errorf("/openapi.json has %d bytes, core/api/openapi.json %d without spaces", len(got.Body), want.Len())
	}
}
