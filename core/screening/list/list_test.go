package list_test

import (
	"crypto/rand"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/screening/list"
	"intents.internal/pkg/caip"
)

const (
	ronin   = "0x098B716B8Aaf21512996dC57EB0615e2383E2f96"
	lazarus = "0xa0e1c89Ef1a489c9C7dE96311eD5Ce5D32c20E4B"
	other   = "0x3Cffd56B47B7b41c56258D9C7731ABaDc360E073"
	tron    = "TGSmwTJrUJyfUDWNAwX7WkWSjUrUAmLCcY"
)

func on(chain uint64, address string) caip.AccountID {
	return caip.AccountID{Chain: caip.EIP155Chain(chain), Address: address}
}

// write makes a file of the test's own.
func write(tb testing.TB, name, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func TestRead(t *testing.T) {
	t.Parallel()
	type result struct {
		Listed           []string
		Entries, Skipped int
		Fault            string
	}
	const (
		low     = "0x098b716b8aaf21512996dc57eb0615e2383e2f96"
		address = "must be an address of 0x and 40 hexadecimal digits; what follows it must be apart"
		notJSON = `must be a JSON array of strings, or of objects with "address" and perhaps "label"`
		bound   = "must be eip155:CHAIN:0x…, with the number of an EVM chain"
	)
	one, none := result{Listed: []string{low}, Entries: 1}, result{}
	fault := func(line, reason string) result { return result{Fault: "line " + line + " " + reason} }
	for name, c := range map[string]struct {
		file, text string
		want       result
	}{
		"EIP-55":                   {"a.txt", ronin, one},
		"wrong EIP-55":             {"a.txt", "0x098b716b8Aaf21512996dC57EB0615e2383E2f96", one},
		"lower case":               {"a.txt", strings.ToLower(ronin), one},
		"upper case":               {"a.txt", strings.ToUpper(ronin), one},
		"upper case but for 0x":    {"a.txt", "0x" + strings.ToUpper(ronin[2:]), one},
		"byte order mark":          {"a.txt", "\ufeff" + ronin + "\n", one},
		"joined with another mark": {"a.txt", "# one\n\ufeff" + ronin + "\n", one},
		"CRLF and blank lines":     {"a.txt", "\r\n\r\n" + ronin + "\r\n \t\r\n", one},
		"comments":                 {"a.txt", "# " + lazarus + "\n  #x\n" + ronin, one},
		"labels":                   {"a.txt", ronin + " Ronin\n" + ronin + "\tagain\n" + ronin + ",csv\n" + ronin + "; list", one},
		"spaces before":            {"a.txt", " \u00a0" + ronin, one},
		"nothing":                  {"a.txt", "", none},
		"comments alone":           {"a.txt", "# none\n\n", none},
		"twice":                    {"a.txt", ronin + "\n" + low, one},
		"Tron and Bitcoin":         {"a.txt", tron + "\n" + ronin + "\nbc1q0xexample label\n12QtD5BFwRsdNsAZY76UVE1xyCGNTojH9h", result{one.Listed, 1, 3, ""}},
		"Tron alone":               {"a.txt", tron, result{Skipped: 1}},
		"one chain":                {"a.txt", "eip155:1:" + ronin + " contract", result{[]string{"eip155:1:" + low}, 1, 0, ""}},
		"one chain and all":        {"a.txt", "eip155:1:" + ronin + "\n" + ronin, result{[]string{low, "eip155:1:" + low}, 2, 0, ""}},
		"an exception":             {"a.txt", ronin + "\neip155:1:" + ronin + "\n!" + low + " ticket 4711", result{nil, 3, 0, ""}},
		"an exception alone":       {"a.txt", "!" + ronin + " ticket", result{nil, 1, 0, ""}},

		"cut off":                 {"a.txt", lazarus + "\n" + ronin[:41], fault("2", address)},
		"0x alone":                {"a.txt", "0x", fault("1", address)},
		"too long":                {"a.txt", ronin + "0", fault("1", address)},
		"another letter":          {"a.txt", "0xg" + ronin[3:], fault("1", address)},
		"a label not apart":       {"a.txt", ronin + "Ronin", fault("1", address)},
		"two in a line":           {"a.txt", ronin + "\r" + lazarus, fault("1", "has a control character")},
		"a NUL":                   {"a.txt", ronin + " a\x00b", fault("1", "has a control character")},
		"an exception, no reason": {"a.txt", "!" + ronin + " ", fault("1", "takes an address out and does not say why; write a label after it, such as a ticket")},
		"an exception of a chain": {"a.txt", "!eip155:1:" + ronin + " ticket", fault("1", "takes an address out of one chain; it takes it out wholly, so leave the chain out")},
		"an exception of Tron":    {"a.txt", "!" + tron + " ticket", fault("1", address)},
		"an exception apart":      {"a.txt", "! " + ronin + " ticket", fault("1", address)},
		"a chain of no number":    {"a.txt", "eip155:one:" + ronin, fault("1", bound)},
		"a chain in upper case":   {"a.txt", "EIP155:1:" + ronin, fault("1", bound)},
		"a chain without address": {"a.txt", "eip155:1", fault("1", bound)},
		"a chain, cut off":        {"a.txt", "eip155:1:" + ronin[:41], fault("1", address)},

		"JSON of strings":          {"a.json", `["` + ronin + `", "` + tron + `"]`, result{one.Listed, 1, 1, ""}},
		"JSON of objects":          {"a.json", "\ufeff[\n{\"address\":\"" + ronin + `","label":"x"},{"address":"` + low + "\"}\n]\n", one},
		"JSON, an exception":       {"a.json", `[{"label":"ticket 4711","address":"!` + ronin + `"},"` + ronin + `"]`, result{nil, 2, 0, ""}},
		"JSON, empty":              {"a.json", "[]", none},
		"JSON, no reason":          {"a.json", "[\n\n{\"address\":\"!" + ronin + `"}]`, fault("3", "takes an address out and does not say why; write a label after it, such as a ticket")},
		"JSON, cut off address":    {"a.json", "[\"" + ronin + "\",\n\"" + ronin[:30] + `"]`, fault("2", address)},
		"JSON, cut off":            {"a.json", "[\"" + ronin + "\",\n\"", fault("2", notJSON)},
		"JSON, an object":          {"a.json", `{"address":"` + ronin + `"}`, fault("1", notJSON)},
		"JSON, a number":           {"a.json", `[1]`, fault("1", notJSON)},
		"JSON, null":               {"a.json", `[null]`, fault("1", notJSON)},
		"JSON, an unknown member":  {"a.json", `[{"address":"` + ronin + `","name":"x"}]`, fault("1", notJSON)},
		"JSON, a member twice":     {"a.json", `[{"address":"` + ronin + `","address":"` + lazarus + `"}]`, fault("1", notJSON)},
		"JSON, no address":         {"a.json", `[{"label":"x"}]`, fault("1", notJSON)},
		"JSON, a label as address": {"a.json", `[{"address":"","label":"` + ronin + `"}]`, fault("1", notJSON)},
		"JSON, something after it": {"a.json", `[]` + "\n" + `[]`, fault("2", notJSON)},
		"JSON, empty file":         {"a.json", ``, fault("1", notJSON)},
		"JSON by another name":     {"a.txt", `["` + ronin + `"]`, result{Skipped: 1}},
	} {
		path := write(t, c.file, c.text)
		got, file := result{}, (*list.File)(nil)
		file, err := list.Read(path)
		if err != nil {
			got.Fault = strings.TrimPrefix(err.Error(), path+" ")
		} else {
			got.Entries, got.Skipped = file.Entries, file.Skipped
			if l := list.New([]*list.File{file}); l.Len() > 0 {
				got.Listed = l.Addresses()
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestRead_Unreadable(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"cannot be read: no such file or directory": filepath.Join(t.TempDir(), "none.txt"),
		"cannot be read: it is no regular file":     t.TempDir(),
	} {
		if _, err := list.Read(path); err == nil || err.Error() != path+" "+name {
			t.Errorf("%v, want %s", err, name)
		}
	}
}

func TestRead_TooMany(t *testing.T) {
	t.Parallel()
	line := ronin + "\n"
	full := write(t, "full.txt", strings.Repeat(line, list.MaxEntries))
	if f, err := list.Read(full); err != nil || f.Entries != 1 {
		t.Errorf("a million: %v", err)
	}
	over := write(t, "over.txt", strings.Repeat(line, list.MaxEntries+1))
	if _, err := list.Read(over); err == nil || !strings.Contains(err.Error(), "line 1000001 is one entry too many") {
		t.Errorf("one more: %v", err)
	}
	large := write(t, "large.txt", "#"+strings.Repeat(" ", list.MaxBytes))
	if _, err := list.Read(large); err == nil || !strings.Contains(err.Error(), "it has more than 67108864 bytes") {
		t.Errorf("too many bytes: %v", err)
	}
}

func TestList_Find(t *testing.T) {
	t.Parallel()
	files, err := list.ReadAll([]string{
		write(t, "a.txt", ronin+" Ronin\neip155:1:"+lazarus+" contract\n"+other+" wrong\n"),
		write(t, "b.json", `[{"address":"`+ronin+`","label":"again"},{"address":"!`+other+`","label":"ticket 4711"}]`),
		write(t, "c.txt", other+"\neip155:8453:"+other+"\n"),
	})
	if err != nil {
		t.Fatal(err)
	}
	l := list.New(files)
	type found struct {
		Label  string
		Listed bool
	}
	for account, want := range map[caip.AccountID]found{
		on(1, ronin):                     {"Ronin", true},
		on(8453, ronin):                  {"Ronin", true},
		on(8453, strings.ToLower(ronin)): {"Ronin", true},
		on(1, lazarus):                   {"contract", true},
		on(10, lazarus):                  {},
		on(1, other):                     {},
		on(8453, other):                  {},
		on(1, caip.ZeroAddress):          {},
		on(1, ""):                        {},
		{Chain: caip.ChainID{Namespace: "tron", Reference: "1"}, Address: ronin}: {},
	} {
		label, listed := l.Find(account)
		if diff := cmp.Diff(want, found{label, listed}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", account, diff)
		}
	}
	address, _ := list.ParseAddress(other)
	got := list.Places(files, address)
	low := strings.ToLower(other)
	want := []list.Place{
		{files[0].Path, 3, low, "wrong"}, {files[1].Path, 1, "!" + low, "ticket 4711"}, {files[2].Path, 1, low, ""}, {files[2].Path, 2, "eip155:8453:" + low, ""},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
}

// FuzzRead holds every file to what the list promises: each line that looks like an address is listed or a fault, and nothing else is listed.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{ronin, "\ufeff" + ronin + " x\r\n", "!" + ronin + " t\n" + ronin, "eip155:1:" + ronin, "0x", tron, `["` + ronin + `",{"address":"` + other + `"}]`} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, text string, asJSON bool) {
		name := "a.txt"
		if asJSON {
			name = "a.json"
		}
		file, err := list.Read(write(t, name, text))
		if err != nil {
			return
		}
		l := list.New([]*list.File{file})
		if l.Len() > file.Entries {
			t.Fatalf("%d addresses of %d entries", l.Len(), file.Entries)
		}
		for _, entry := range l.Addresses() {
			chain, address, bound := strings.Cut(strings.TrimPrefix(entry, "eip155:"), ":")
			if !bound {
				chain, address = "1", entry
			}
			account := caip.AccountID{Chain: caip.ChainID{Namespace: caip.EIP155, Reference: chain}, Address: address}
			if _, listed := l.Find(account); !listed {
				t.Fatalf("%s is not found", entry)
			}
			if !strings.Contains(strings.ToLower(text), address[2:]) && !asJSON {
				t.Fatalf("%s is not in the file", entry)
			}
		}
		if !asJSON {
			for line := range strings.SplitSeq(text, "\n") {
				if line = strings.TrimSpace(line); strings.HasPrefix(line, "0x") {
					address, ok := list.ParseAddress(line[:min(42, len(line))])
					if places := list.Places([]*list.File{file}, address); !ok || len(places) == 0 {
						t.Fatalf("a line with an address was taken without it: %q", line)
					}
				}
			}
		}
	})
}

// million is a list of a million random addresses, and a share of them.
func million(b *testing.B) (*list.List, []caip.AccountID) {
	b.Helper()
	var text strings.Builder
	var accounts []caip.AccountID
	seed := make([]byte, 20*list.MaxEntries)
	_, _ = rand.Read(seed)
	for n := range list.MaxEntries {
		address := list.Address(seed[20*n:])
		text.WriteString(address.String() + "\n")
		if n%100 == 0 {
			accounts = append(accounts, on(1, address.String()))
		}
	}
	file, err := list.Read(write(b, "million.txt", text.String()))
	if err != nil {
		b.Fatal(err)
	}
	for n := range accounts { // next to each other, as those of clear: a request has just read its accounts
		accounts[n].Address = strings.Clone(accounts[n].Address)
	}
	return list.New([]*list.File{file}), accounts
}

func BenchmarkList_Find(b *testing.B) {
	l, listed := million(b)
	var clear []caip.AccountID
	for n := range 10_000 {
		var a list.Address
		_, _ = rand.Read(a[:])
		binary.BigEndian.PutUint16(a[18:], uint16(n))
		clear = append(clear, on(8453, a.String()))
	}
	for name, accounts := range map[string][]caip.AccountID{"listed": listed, "clear": clear} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				if _, found := l.Find(accounts[n%len(accounts)]); found != (name == "listed") {
					b.Fatal(found)
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		list.ParseAddress(ronin)
	}
}
