package command_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/store/postgres/pgtest"
)

// listServers serve token lists over http and https and send readers from one to the other.
type listServers struct {
	http, https *httptest.Server
	// trust is the setting with which core trusts the https server.
	trust string
}

func newListServers(t *testing.T) *listServers {
	t.Helper()
	s := &listServers{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /list.json", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(pgtest.TokensJSON) })
	mux.HandleFunc("GET /here", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/list.json", http.StatusFound) })
	mux.HandleFunc("GET /circle", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/circle", http.StatusFound) })
	mux.HandleFunc("GET /other-scheme", func(w http.ResponseWriter, r *http.Request) {
		other := s.https
		if r.TLS != nil {
			other = s.http
		}
		http.Redirect(w, r, other.URL+"/list.json", http.StatusFound)
	})
	mux.HandleFunc("GET /large", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.Copy(w, io.LimitReader(endless{}, 17<<20))
	})
	mux.HandleFunc("GET /stalled", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"tokens":[`)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	s.http, s.https = httptest.NewServer(mux), httptest.NewTLSServer(mux)
	t.Cleanup(s.http.Close)
	t.Cleanup(s.https.Close)
	certificate := filepath.Join(t.TempDir(), "ca.pem")
	encoded := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.https.Certificate().Raw})
	if err := os.WriteFile(certificate, encoded, 0o600); err != nil {
		t.Fatal(err)
	}
	s.trust = "SSL_CERT_FILE=" + certificate
	return s
}

// endless is blanks without end.
type endless struct{}

func (endless) Read(buffer []byte) (int, error) {
	for i := range buffer {
		buffer[i] = ' '
	}
	return len(buffer), nil
}

func TestImportTokens_URL(t *testing.T) {
	t.Parallel()
	servers, url := newListServers(t), pgtest.Database(t)
	if got := core(t, string(pgtest.ChainsJSON), on(url), "chains", "import", "-"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	file := filepath.Join(t.TempDir(), "list.json")
	if err := os.WriteFile(file, pgtest.TokensJSON, 0o600); err != nil {
		t.Fatal(err)
	}
	stores := func(source, license string, counts string) string {
		note := ""
		if license == "-" {
			note = unlicensed(7) + "\n"
		}
		return note + "tokens: " + counts + ", 0 refused\n" + fmt.Sprintf("%7d  %-20s  %s\n", 7, license, source)
	}
	const added, same, updated = "7 added, 0 updated, 0 unchanged", "0 added, 0 updated, 7 unchanged", "0 added, 7 updated, 0 unchanged"
	secret := strings.Replace(servers.http.URL, "http://", "http://ann:hunter2@", 1)
	for _, c := range []struct {
		args []string
		want string // of the import and of `core tokens sources`
	}{
		{[]string{servers.https.URL + "/list.json"}, stores(servers.https.URL+"/list.json", "-", added)},
		{[]string{servers.https.URL + "/list.json"}, stores(servers.https.URL+"/list.json", "-", same)},
		{[]string{servers.https.URL + "/here", "--license", "MIT"}, stores(servers.https.URL+"/here", "MIT", updated)},
		{[]string{secret + "/list.json?token=hunter2"}, stores(servers.http.URL+"/list.json", "-", updated)},
		{[]string{file}, stores("Tokens for tests", "-", updated)},
		{[]string{"--source", "ours", "--license=GPL-3.0-or-later", file}, stores("ours", "GPL-3.0-or-later", updated)},
	} {
		got := core(t, "", append(on(url), servers.trust), append([]string{"tokens", "import"}, c.args...)...)
		sources := core(t, "", on(url), "tokens", "sources")
		if diff := cmp.Diff(result{0, c.want, ""}, result{got.Code, got.Out + sources.Out, got.ErrOut + sources.ErrOut}); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.args, diff)
		}
	}
}

func TestImportTokens_URLRefused(t *testing.T) {
	t.Parallel()
	servers, url := newListServers(t), pgtest.Database(t)
	for _, c := range []struct{ location, says string }{
		{servers.https.URL + "/nowhere", "the answer is 404 Not Found"},
		{servers.https.URL + "/other-scheme", "a redirect to another scheme, " + servers.http.URL + "/list.json, is not followed"},
		{servers.http.URL + "/other-scheme", "a redirect to another scheme, " + servers.https.URL + "/list.json, is not followed"},
		{servers.https.URL + "/circle", "more than 5 redirects"},
		{servers.https.URL + "/large", "it has more than 16 MiB; split the list"},
		{servers.https.URL + "/stalled", "it takes longer than --timeout=1.5s; raise it, or import the list from a file"},
		{"http://192.0.2.1/list.json", "dial tcp 192.0.2.1:80: http is for this machine only; use https"},
		{"ftp://127.0.0.1/list.json", `scheme "ftp" is not supported; use https, or import the list from a file`},
		{"file:///etc/hostname", `scheme "file" is not supported; use https, or import the list from a file`},
	} {
		want := result{1, "", "core: download " + c.location + ": " + c.says + "\n"}
		timeout, stalled := "--timeout=1m", strings.HasSuffix(c.location, "/stalled")
		if stalled {
			timeout, want.Out = "--timeout=1500ms", "downloaded 11 of 1000 bytes\n"
		}
		got := core(t, "", append(on(url), servers.trust), "tokens", "import", timeout, c.location)
		if !stalled {
			got.Out = "" // progress, where the machine is slow
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.location, diff)
		}
	}
	// The certificate of a stranger is no reason to go on without.
	got := core(t, "", on(url), "tokens", "import", servers.https.URL+"/list.json")
	if got.Code != 1 || !strings.Contains(got.ErrOut, "certificate signed by unknown authority") {
		t.Errorf("a server that is not trusted: %+v", got)
	}
}
