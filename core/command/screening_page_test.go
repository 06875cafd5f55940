package command_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"intents.internal/core/pgtest"
)

// screeningPage are the code blocks of deploy/screening.md, of which each has the text that it is asked for by.
func screeningPage(t *testing.T, has string) string {
	t.Helper()
	page, err := os.ReadFile("../../deploy/screening.md")
	pgtest.Must(t, err)
	for _, block := range regexp.MustCompile("(?s)\n```(?:sh)?\n(.*?)```\n").FindAllStringSubmatch(string(page), -1) {
		if strings.Contains(block[1], has) {
			return block[1]
		}
	}
	t.Fatalf("the page has no code with %q", has)
	return ""
}

// replace puts another text in the place of one that must be there.
func replace(t *testing.T, text, old, with string) string {
	t.Helper()
	if strings.Count(text, old) != 1 {
		t.Fatalf("%q is %d times in\n%s", old, strings.Count(text, old), text)
	}
	return strings.Replace(text, old, with, 1)
}

// shell runs a script with core on PATH.
func shell(t *testing.T, settings []string, script string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
	cmd.Env, cmd.Stdout, cmd.Stderr = slices.Concat(settings, []string{"PATH=" + filepath.Dir(binary) + ":" + os.Getenv("PATH")}), &out, &errOut
	_ = cmd.Run()
	return result{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

// The cron line of the page replaces each list whole, and none by what the publisher should not have sent.
func TestScreeningPage_Cron(t *testing.T) {
	t.Parallel()
	var answer atomic.Value
	publisher := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asset := regexp.MustCompile(`^/sanctioned_addresses_([A-Z]+)\.txt$`).FindStringSubmatch(r.URL.Path)
		switch how := answer.Load().(string); {
		case asset == nil:
			http.NotFound(w, r)
		case how == "" || asset[1] != "USDT":
			_, _ = fmt.Fprintf(w, "%s\nTGSmwTJrUJyfUDWNAwX7WkWSjUrUAmLCcY\n0x%040x\n", screenedRecipient, len(asset[1])+int(asset[1][0]))
		case how == "500":
			http.Error(w, screenedPayer, http.StatusInternalServerError)
		default:
			_, _ = w.Write([]byte(how))
		}
	}))
	t.Cleanup(publisher.Close)
	dir := t.TempDir()
	script := replace(t, screeningPage(t, "intents-screening"), "cd /etc/intents/screening", "cd "+dir)
	script = replace(t, script, "https://raw.githubusercontent.com/0xB10C/ofac-sanctioned-digital-currency-addresses/lists", publisher.URL)
	answer.Store("")
	if got := shell(t, nil, script); got != (result{}) {
		t.Fatalf("%+v", got)
	}
	names := func() string {
		entries, err := os.ReadDir(dir)
		pgtest.Must(t, err)
		var all []string
		for _, e := range entries {
			info, err := e.Info()
			pgtest.Must(t, err)
			all = append(all, fmt.Sprintf("%s %o", e.Name(), info.Mode().Perm()))
		}
		return strings.Join(all, ", ")
	}
	const six = "ofac-ARB.txt 644, ofac-BSC.txt 644, ofac-ETC.txt 644, ofac-ETH.txt 644, ofac-USDC.txt 644, ofac-USDT.txt 644"
	if got := names(); got != six {
		t.Errorf("the directory has %s", got)
	}
	before, err := os.ReadFile(filepath.Join(dir, "ofac-USDT.txt"))
	pgtest.Must(t, err)
	for what, c := range map[string]struct{ answer, says string }{
		"an error":       {"500", "curl: (22)"},
		"a page of HTML": {"<html>busy</html>", "has no entry"},
		"a part":         {screenedPayer + "\n" + screenedPayer[:20], "line 2 must be an address"},
	} {
		answer.Store(c.answer)
		got := shell(t, nil, script)
		after, err := os.ReadFile(filepath.Join(dir, "ofac-USDT.txt"))
		if err != nil || got.Code == 0 || !strings.Contains(got.ErrOut, c.says) || !bytes.Equal(before, after) || names() != six {
			t.Errorf("%s: %+v, %v, the directory has %s", what, got, err, names())
		}
	}
}

// What the page says of own files and of asking holds: its file is listed by the lines it names.
func TestScreeningPage_Commands(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	insertHits(t, pgtest.Open(t, url))
	settings, dir := screeningSettings(t, url, map[string]string{"own.txt": screeningPage(t, "# own.txt")}, "own.txt")
	if got := shell(t, settings, "core screening check "+dir+"/own.txt"); got.Code != 0 || !strings.HasPrefix(got.Out, dir+"/own.txt: 3 entries, 0 lines skipped\n") {
		t.Errorf("check: %+v", got)
	}
	got := shell(t, settings, screeningPage(t, "core screening hits"))
	for _, says := range []string{screenedRecipient, "case 12", dir + "/own.txt line 2: 0x098b716b8aaf21512996dc57eb0615e2383e2f96 case 12\nlisted\n", "0 intents have it\n"} {
		if got.Code != 0 || !strings.Contains(got.Out, says) {
			t.Errorf("not %q: %+v", says, got)
		}
	}
}
