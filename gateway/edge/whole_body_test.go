package edge_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"intents.internal/gateway/coretest"
	"intents.internal/pkg/network"
)

// Bodies of every length arrive whole and in order behind their headers, also of requests that were sent at once: around 16 KiB,
// up to which a body is copied behind its header, and around 256 KiB, which are written at once.
func TestWholeBody_Lengths(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for n := 0; all.Len() < 600<<10; n++ {
		fmt.Fprintf(&all, "%d ", n)
	}
	core := coretest.Start(t, func(w http.ResponseWriter, r *http.Request) {
		length, _ := strconv.Atoi(strings.TrimPrefix(r.URL.RawQuery, "limit="))
		w.Header().Set("Content-Length", strconv.Itoa(length))
		_, _ = io.WriteString(w, all.String()[:length])
	})
	g := start(t, core)
	for document, around := range map[string]int{"/openapi.json": 16 << 10, "/docs": 256 << 10, "/docs/style.css": 512 << 10} {
		shared := all.String()[:around+1]
		core.Documents.Put(document, shared)
		t.Run(fmt.Sprint(around), func(t *testing.T) {
			t.Parallel()
			key := apiKey(core.AddKey(network.Test))
			c := g.dial(t)
			defer c.Close()
			for length := around - 1000; length <= around+500; length += 150 {
				list := request("GET", fmt.Sprintf("/v2/transfers?limit=%d", length), key, "")
				c.write(t, list+request("GET", document, "", "")+list)
				for n, want := range []string{all.String()[:length], shared, all.String()[:length]} {
					if got := c.read(t, "GET"); got.Status != 200 || got.Body != want {
						t.Fatalf("length %d, answer %d: status %d, %d bytes", length, n, got.Status, len(got.Body))
					}
				}
			}
		})
	}
}
