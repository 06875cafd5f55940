package command_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/rooms"
	"intents.internal/core/screening"
	"intents.internal/pkg/network"
)

const (
	screenedPayer     = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
	screenedRecipient = "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
)

// screeningSettings are the settings for a database and these files of the list.
func screeningSettings(t *testing.T, databaseURL string, files map[string]string, names ...string) (settings []string, dir string) {
	t.Helper()
	dir = t.TempDir()
	paths := make([]string, len(names))
	for n, name := range names {
		paths[n] = filepath.Join(dir, name)
		pgtest.Must(t, os.WriteFile(paths[n], []byte(files[name]), 0o600))
	}
	return append(on(databaseURL), "CORE_SCREENING_FILE="+strings.Join(paths, ",")), dir
}

// insertHits stores a hit of ann's an hour ago, one of nobody's now, and one of two days ago, and returns ann's id.
func insertHits(t *testing.T, store *rooms.Rooms) uuid.UUID {
	t.Helper()
	ann := pgtest.SignUp(t, store, "ann@example.com").ID
	now := store.Now()
	pgtest.Must(t, store.Screening.InsertHits(t.Context(), []screening.Hit{
		{
			AccountID: ann, KeyID: uuid.UUID{1}, Environment: network.Live, Stage: screening.AtCreation, Side: screening.DestinationSide, Address: screenedRecipient, Label: "case 12",
			IntentID: uuid.UUID{2}, RequestID: "req-1", At: now.Add(-time.Hour),
		},
		{Stage: screening.AtSignIn, Side: screening.WalletSide, Address: screenedPayer, At: now},
		{AccountID: ann, Environment: network.Test, Stage: screening.AtQuote, Side: screening.SourceSide, Address: screenedPayer, Label: "old", At: now.Add(-48 * time.Hour)},
	}, nil))
	return ann
}

func TestScreening_Hits(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	ann := insertHits(t, pgtest.Open(t, url)).String()
	at := regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`)
	key, intent := uuid.UUID{1}.String(), uuid.UUID{2}.String()
	old := "quote source " + screenedPayer + " old test " + ann + " - - -"
	hour := "create destination " + screenedRecipient + " case 12 live " + ann + " " + key + " " + intent + " req-1"
	wallet := "siwe wallet " + screenedPayer + " - - - - - -"
	for arguments, want := range map[string][]string{
		"":                                      {hour, wallet},
		"--since 72h":                           {old, hour, wallet},
		"--since 1m":                            {wallet},
		"--since 72h --account ann@example.com": {old, hour},
		"--account " + ann:                      {hour},
		"--account " + uuid.Must(uuid.NewV7()).String(): nil,
	} {
		got := core(t, "", on(url), append([]string{"screening", "hits"}, strings.Fields(arguments)...)...)
		header, rows, _ := strings.Cut(got.Out, "\n")
		var lines []string
		for line := range strings.Lines(rows) {
			line = strings.Join(strings.Fields(line), " ")
			if first, rest, _ := strings.Cut(line, " "); at.MatchString(first) {
				line = rest
			}
			lines = append(lines, line)
		}
		if diff := cmp.Diff(want, lines); diff != "" || got.Code != 0 || got.ErrOut != "" || !strings.HasPrefix(header, "at ") {
			t.Errorf("hits %s: %d %s %s (-want +got):\n%s", arguments, got.Code, header, got.ErrOut, diff)
		}
	}
	if got := core(t, "", on(url), "screening", "hits", "--account", "bob@example.com"); got != (result{1, "", "core: no account has the e-mail address \"bob@example.com\"\n"}) {
		t.Errorf("an account that is not there: %+v", got)
	}
}

// The JSON has the columns of the table, and null where a column has.
func TestScreening_HitsJSON(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store := pgtest.Open(t, url)
	insertHits(t, store)
	read := func(arguments ...string) (rows []map[string]any) {
		t.Helper()
		got := core(t, "", on(url), append([]string{"screening", "hits", "--json"}, arguments...)...)
		if err := json.Unmarshal([]byte(got.Out), &rows); err != nil || got.Code != 0 {
			t.Fatalf("%+v: %v", got, err)
		}
		return rows
	}
	var want []map[string]any
	pgtest.Must(t, json.Unmarshal([]byte(lookUp[string](t, store, `SELECT json_agg(to_jsonb(h) - 'at' ORDER BY at)::text FROM screening_hits h`)), &want))
	got := read("--since", "72h")
	for _, row := range got {
		if at, _ := row["at"].(string); !strings.HasSuffix(at, "Z") {
			t.Errorf("at is %v", row["at"])
		}
		delete(row, "at")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if none := read("--account", uuid.NewString()); none == nil || len(none) != 0 {
		t.Errorf("no hits are %v, want an empty array", none)
	}
}

// An appeal asks by which line an address is listed, and which intents have it.
func TestScreening_Find(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	store := pgtest.Open(t, url)
	known := pgtest.LoadRegistry(t, store)
	owner := pgtest.SignUp(t, store, "ann@example.com").ID
	const of = `{"source":{"account":"eip155:11155111:%s","token":"eip155:11155111:0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238","amount":"5"},"destination":{"account":"eip155:11155111:%s"}}`
	body := func(from, to string) string { return strings.Replace(strings.Replace(of, "%s", from, 1), "%s", to, 1) }
	var intents []string
	for _, b := range []string{body(screenedPayer, screenedRecipient), body(screenedRecipient, screenedPayer), body(screenedPayer, "0x098B716B8Aaf21512996dC57EB0615e2383E2f96")} {
		i := pgtest.InsertTransfer(t, store, known, owner, b)
		side := "source"
		if i.Source.Account.Address != screenedRecipient {
			side = "destination"
		}
		if i.Source.Account.Address == screenedRecipient || i.Destination.Account.Address == screenedRecipient {
			intents = append(intents, "intent "+i.ID.String()+" of account "+owner.String()+": "+side+", created, created ")
		}
	}
	settings, dir := screeningSettings(t, url, map[string]string{
		"a.txt": "# ours\n" + screenedRecipient + " case 12\n" + screenedPayer + " wrong\n", "b.json": `["` + screenedRecipient + `",{"address":"!` + screenedPayer + `","label":"ticket 4711"}]`,
	}, "a.txt", "b.json")
	low := strings.ToLower(screenedRecipient)
	got := core(t, "", settings, "screening", "find", strings.ToUpper(screenedRecipient))
	want := dir + "/a.txt line 2: " + low + " case 12\n" + dir + "/b.json line 1: " + low + " \nlisted\n" + strings.Join(intents, "AT\n") + "AT\n2 intents have it\n"
	if diff := cmp.Diff(result{0, want, ""}, result{got.Code, regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`).ReplaceAllString(got.Out, "AT"), got.ErrOut}); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, c := range map[string]struct {
		settings []string
		address  string
		says     string
	}{
		"taken out":        {settings, screenedPayer, "b.json line 1: !" + strings.ToLower(screenedPayer) + " ticket 4711\nnot listed: an entry takes it out\n"},
		"in no file":       {settings, "0xa0e1c89Ef1a489c9C7dE96311eD5Ce5D32c20E4B", "not listed\n0 intents have it\n"},
		"the test address": {settings, "0x5C7EE5C7Ee5c7ee5c7eE5C7Ee5C7ee5C7Ee5C7Ee", "it is the test address, which is always listed in the environment test"},
		"no screening":     {on(url), screenedRecipient, "CORE_SCREENING_FILE is not set: nothing is listed\nintent "},
	} {
		if got := core(t, "", c.settings, "screening", "find", c.address); got.Code != 0 || !strings.Contains(got.Out, c.says) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	pgtest.Must(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("0x12"), 0o600))
	if got := core(t, "", settings, "screening", "find", screenedPayer); got.Code != 1 || !strings.Contains(got.ErrOut, "CORE_SCREENING_FILE: "+dir+"/a.txt line 1 must be an address") {
		t.Errorf("a malformed file: %+v", got)
	}
}

// Beforehand an operator is told what a file has, what it changes, and why core would not start with it.
func TestScreening_Check(t *testing.T) {
	t.Parallel()
	url := pgtest.Database(t)
	low := strings.ToLower
	settings, dir := screeningSettings(t, url, map[string]string{"a.txt": screenedPayer + "\n" + screenedRecipient}, "a.txt")
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		pgtest.Must(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	const other = "0x098B716B8Aaf21512996dC57EB0615e2383E2f96"
	changed := file("new.txt", "# two\n"+other+"\n"+screenedPayer+"\nTGSmwTJrUJyfUDWNAwX7WkWSjUrUAmLCcY\n")
	want := changed + ": 2 entries, 1 lines skipped\nagainst CORE_SCREENING_FILE: 1 added, 1 removed, 2 in all\n+ " + low(other) + "\n- " + low(screenedRecipient) + "\n"
	if diff := cmp.Diff(result{0, want, ""}, core(t, "", settings, "screening", "check", changed)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	empty, malformed := file("empty.txt", "# none\n"), file("malformed.txt", "\n0x12\n")
	got := core(t, "", settings, "screening", "check", empty, malformed, filepath.Join(dir, "none.txt"))
	for _, says := range []string{"empty.txt has no entry", "malformed.txt line 2 must be an address", "none.txt cannot be read: no such file or directory"} {
		if got.Code != 1 || !strings.Contains(got.ErrOut, says) {
			t.Errorf("not %q: %+v", says, got)
		}
	}
	store := pgtest.Open(t, url)
	if n := lookUp[int](t, store, "SELECT count(*) FROM screening_accepted"); n != 0 {
		t.Errorf("%d files are let in without --accept-smaller", n)
	}
	if got := core(t, "", settings, "screening", "check", "--accept-smaller", empty); got.Code != 0 || !strings.Contains(got.Out, "every core lets these contents in within 30s, for 24h0m0s from now\n") {
		t.Errorf("let in: %+v", got)
	}
	if n := lookUp[int](t, store, "SELECT count(*) FROM screening_accepted WHERE sha256 = sha256('# none\n')"); n != 1 {
		t.Errorf("%d files are let in", n)
	}
}
