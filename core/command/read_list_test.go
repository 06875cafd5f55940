package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/pgtest"
)

func TestImportTokens_Origin(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	if got := core(t, string(pgtest.ChainsJSON), on(url), "chains", "import", "-"); got.Code != 0 {
		t.Fatalf("%+v", got)
	}
	file := filepath.Join(t.TempDir(), "list.json")
	if err := os.WriteFile(file, pgtest.TokensJSON, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args                            []string
		added, updated, unchanged       int
		source, license, unlicensedLine string
	}{
		{[]string{file}, 7, 0, 0, "Tokens for tests", "-", unlicensed(7) + "\n"},
		{[]string{file}, 0, 0, 7, "Tokens for tests", "-", unlicensed(7) + "\n"},
		{[]string{"--source", "ours", "--license=GPL-3.0-or-later", file}, 0, 7, 0, "ours", "GPL-3.0-or-later", ""},
	} {
		want := c.unlicensedLine + fmt.Sprintf("tokens: %d added, %d updated, %d unchanged, 0 refused\n", c.added, c.updated, c.unchanged) +
			fmt.Sprintf("%7d  %-20s  %s\n", 7, c.license, c.source)
		got := core(t, "", on(url), append([]string{"tokens", "import"}, c.args...)...)
		sources := core(t, "", on(url), "tokens", "sources")
		if diff := cmp.Diff(result{0, want, ""}, result{got.Code, got.Out + sources.Out, got.ErrOut + sources.ErrOut}); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.args, diff)
		}
	}
}

func TestImportTokens_Unreadable(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	const address = "https://tokens.example.org/list.json"
	for _, c := range []struct{ location, input, says string }{
		{address, "", address + " is a URL and lists are read from files; use: curl -fsSL URL | core tokens import --source URL -"},
		{"nowhere.json", "", "open nowhere.json: no such file or directory"},
		{"-", strings.Repeat(" ", 16<<20+1), "read /dev/stdin: it has more than 16 MiB; split the list"},
	} {
		got := core(t, c.input, on(url), "tokens", "import", c.location)
		if diff := cmp.Diff(result{1, "", "core: " + c.says + "\n"}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.location, diff)
		}
	}
}
