package stack

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Downloads and packages are counted, and everything else is passed on.
func TestBuildProgress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var said []string
		p := buildProgress{name: "services", log: func(line string) { said = append(said, line) }}
		for _, line := range []string{
			"go: downloading github.com/jackc/pgx/v5 v5.7.0", "internal/unsafeheader", "# intents.internal/core",
			"core/main.go:3:1: undefined: x", "golang.org/x/sync/errgroup", "intents.internal/core",
		} {
			p.line(line)
			<-time.After(3 * time.Second)
		}
		want := []string{
			"# intents.internal/core", "core/main.go:3:1: undefined: x",
			"services: 2 packages compiled, 1 modules downloaded",
		}
		if diff := cmp.Diff(want, said); diff != "" {
			t.Errorf("lines (-want +got):\n%s", diff)
		}
	})
}
