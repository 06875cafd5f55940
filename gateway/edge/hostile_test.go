package edge_test

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/coretest"
)

// rule is one line of the tables in README.md: an input, what it is answered, and what shows it.
type rule struct {
	input, answer string
	// rows are sent one after the other to a gateway that the whole theme shares.
	rows []row
	// shown stands instead of rows where they cannot show it.
	shown func(*testing.T)
}

// row is what a client sends on a connection of its own, what it reads, and what core is told: nothing, where told is
// empty.
type row struct {
	name, sent string
	// Where or is given, either answer will do.
	want, or response
	told     string
}

// themes are the headings in README.md, in order.
var themes = []struct {
	heading string
	rules   []rule
}{
	{"Requests that end in two places", lengthRules},
	{"Chunks", chunkRules},
	{"Request lines", lineRules},
	{"Paths and queries", targetRules},
	{"Header lines", headerRules},
	{"Who it is", identityRules},
	{"Time", timeRules},
	{"Core, Redis and the gateway itself", upstreamRules},
}

func TestHostileInputs(t *testing.T) {
	t.Parallel()
	for _, theme := range themes {
		t.Run(theme.heading, func(t *testing.T) {
			t.Parallel()
			core := coretest.Start(t, nil)
			g := start(t, core)
			putRowKey(core)
			for _, rule := range theme.rules {
				t.Run(rule.input, func(t *testing.T) {
					if rule.shown != nil {
						rule.shown(t)
						return
					}
					for _, row := range rule.rows {
						t.Run(row.name, func(t *testing.T) { row.check(t, g, core) })
					}
				})
			}
		})
	}
}

// check sends the row and holds what came of it to what should. A connection that is closed must end right after the
// answer, and one that is kept must answer the next request: a second answer to the same row would show in both.
func (r *row) check(t *testing.T, g *gateway, core *coretest.Core) {
	t.Helper()
	c := g.dial(t)
	defer c.Close()
	c.write(t, r.sent)
	got := c.read(t, methodOf(r.sent))
	got.Header.Del("Ratelimit")
	got.Header.Del("Ratelimit-Policy")
	if diff := cmp.Diff(r.want, got); diff != "" && !cmp.Equal(r.or, got) {
		t.Errorf("answer (-want +got):\n%s", diff)
	}
	if got.Header.Get("Connection") == "close" {
		if !c.closed() {
			t.Error("the connection is not closed, or something follows the answer")
		}
	} else {
		c.write(t, request("GET", "/health", "X-Request-Id: the-next\r\n", ""))
		if next := c.read(t, "GET"); next.Status != 204 || next.Header.Get("X-Request-Id") != "the-next" {
			t.Errorf("what follows is not the next answer: %+v", next)
		}
	}
	if diff := cmp.Diff(r.told, canonicals(core.Take())); diff != "" {
		t.Errorf("what core was told (-want +got):\n%s", diff)
	}
}

// Every refusal that closes does so with a whole request behind it, sent together with it.
func TestHostileInputs_ClosedConnection(t *testing.T) {
	t.Parallel()
	core := coretest.Start(t, nil)
	g := start(t, core)
	putRowKey(core)
	for _, theme := range themes {
		for _, rule := range theme.rules {
			for _, row := range rule.rows {
				if row.want.Status < 400 || row.want.Header.Get("Connection") != "close" {
					continue
				}
				c := g.dial(t)
				c.write(t, row.sent+hidden)
				if got := c.read(t, methodOf(row.sent)); got.Status < 400 {
					t.Errorf("%s / %s: %+v", rule.input, row.name, got)
				}
				if !c.closed() {
					t.Errorf("%s / %s: something follows the refusal", rule.input, row.name)
				}
				_ = c.Close()
			}
		}
	}
	if told := core.Take(); len(told) > 0 {
		t.Errorf("core was told %q", told)
	}
}

// The tables that people read say what the rules say, and these what their rows do.
func TestHostileInputs_README(t *testing.T) {
	t.Parallel()
	file, err := os.Open("README.md")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var said, want []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		text := lines.Text()
		if heading, ok := strings.CutPrefix(text, "## "); ok {
			said = append(said, heading)
		} else if strings.HasPrefix(text, "| ") && text != "| input | answer |" && !strings.HasPrefix(text, "| --- |") {
			said = append(said, text)
		}
	}
	for _, theme := range themes {
		want = append(want, theme.heading)
		for _, rule := range theme.rules {
			want = append(want, "| "+rule.input+" | "+rule.answer+" |")
			for _, row := range rule.rows {
				if !row.fits(rule.answer) {
					t.Errorf("%s / %s is not answered %q", rule.input, row.name, rule.answer)
				}
			}
		}
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Errorf("README.md (-rules +README):\n%s", diff)
	}
}

// fits reports whether the answer of the rule tells the row's status and whether its connection ends.
func (r *row) fits(answer string) bool {
	closes := r.want.Header.Get("Connection") == "close"
	return strings.HasPrefix(answer, fmt.Sprint(r.want.Status)) && closes == strings.Contains(answer, "closed")
}
