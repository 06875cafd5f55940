package command

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/core/rooms"
	"intents.internal/core/screening"
	"intents.internal/core/screening/list"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/settings"
)

const screeningUsage = usageError("use: core screening check [--accept-smaller] FILE…, " +
	"core screening hits [--since 24h] [--account EMAIL|ID] [--json], or core screening find ADDRESS")

// askScreening runs `core screening …`.
func askScreening(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return screeningUsage
	}
	flags := flag.NewFlagSet("screening "+args[0], flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	var accept, asJSON bool
	var since time.Duration
	var of string
	switch args[0] {
	case "check":
		flags.BoolVar(&accept, "accept-smaller", false, "let the files in, smaller or empty")
	case "hits":
		flags.DurationVar(&since, "since", 24*time.Hour, "how far back")
		flags.StringVar(&of, "account", "", "the account's e-mail address or id")
		flags.BoolVar(&asJSON, "json", false, "print JSON")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return usageError(fmt.Sprintf("%v; %s", err, string(screeningUsage)))
	}
	switch {
	case args[0] == "check" && flags.NArg() > 0:
		return checkScreeningFiles(ctx, flags.Args(), accept, os.Stdout)
	case args[0] == "hits" && flags.NArg() == 0 && since > 0:
		return withStore(func(store *rooms.Rooms) error { return listHits(ctx, store, since, of, asJSON, os.Stdout) })
	case args[0] == "find" && flags.NArg() == 1:
		return findScreened(ctx, flags.Arg(0), os.Stdout)
	default:
		return screeningUsage
	}
}

// checkScreeningFiles runs `core screening check FILE…`: it prints what the files contain and what differs from those of
// CORE_SCREENING_FILE, and returns the faults with which core would not start.
func checkScreeningFiles(ctx context.Context, paths []string, accept bool, to io.Writer) error {
	config, err := readConfig(Config.checkScreening)
	if err != nil {
		return err
	}
	var faults []error
	var files []*list.File
	for _, path := range paths {
		file, err := list.Read(path)
		if err == nil && !accept {
			err = file.Empty()
		}
		if err != nil {
			faults = append(faults, err)
			continue
		}
		files = append(files, file)
		fmt.Fprintf(to, "%s: %d entries, %d lines skipped\n", path, file.Entries, file.Skipped)
	}
	if len(faults) > 0 {
		return errors.Join(faults...)
	}
	printListChange(config.screeningPaths(), files, to)
	if !accept {
		return nil
	}
	return withStore(func(store *rooms.Rooms) error {
		sums := make([][sha256.Size]byte, len(files))
		for n, f := range files {
			sums[n] = f.SHA256
		}
		if err := store.CheckMigrated(ctx); err != nil {
			return err
		}
		err := store.Screening.Accept(ctx, sums...)
		if err == nil {
			fmt.Fprintf(to, "every core lets these contents in within %s, for %s from now\n", "30s", screening.AcceptedFor)
		}
		return err
	})
}

// shownChanges is how many addresses of each kind are printed.
const shownChanges = 100

// printListChange prints which addresses the files list and those of CORE_SCREENING_FILE do not, and the other way round.
func printListChange(paths []string, files []*list.File, to io.Writer) {
	if len(paths) == 0 {
		fmt.Fprintln(to, "CORE_SCREENING_FILE is not set, so there is nothing to compare with")
		return
	}
	current, err := list.ReadAll(paths)
	if err != nil {
		fmt.Fprintf(to, "CORE_SCREENING_FILE cannot be compared with: %v\n", err)
		return
	}
	before, after := list.New(current).Addresses(), list.New(files).Addresses()
	missing := func(from, in []string) []string {
		return slices.DeleteFunc(slices.Clone(from), func(a string) bool { _, found := slices.BinarySearch(in, a); return found })
	}
	added, removed := missing(after, before), missing(before, after)
	fmt.Fprintf(to, "against CORE_SCREENING_FILE: %d added, %d removed, %d in all\n", len(added), len(removed), len(after))
	for _, c := range []struct {
		sign string
		of   []string
	}{{"+", added}, {"-", removed}} {
		for _, address := range c.of[:min(len(c.of), shownChanges)] {
			fmt.Fprintln(to, c.sign, address)
		}
		if more := len(c.of) - shownChanges; more > 0 {
			fmt.Fprintf(to, "%s and %d more\n", c.sign, more)
		}
	}
}

// hitJSON has the columns of screening_hits.
type hitJSON struct {
	ID          uuid.UUID       `json:"id"`
	AccountID   *uuid.UUID      `json:"account_id"`
	KeyID       *uuid.UUID      `json:"key_id"`
	Environment *string         `json:"environment"`
	Stage       screening.Stage `json:"stage"`
	Side        screening.Side  `json:"side"`
	Address     string          `json:"address"`
	ListLabel   string          `json:"list_label"`
	IntentID    *uuid.UUID      `json:"intent_id"`
	RequestID   string          `json:"request_id"`
	At          time.Time       `json:"at"`
}

func orNull[T comparable](value T) *T {
	var none T
	if value == none {
		return nil
	}
	return &value
}

// listHits runs `core screening hits`.
func listHits(ctx context.Context, store *rooms.Rooms, since time.Duration, of string, asJSON bool, to io.Writer) error {
	if err := store.CheckMigrated(ctx); err != nil {
		return err
	}
	accountID, err := accountOf(ctx, store, of)
	if err != nil {
		return err
	}
	hits, err := store.Screening.Hits(ctx, store.Now().Add(-since), accountID)
	if err != nil {
		return err
	}
	if asJSON {
		rows := make([]hitJSON, len(hits))
		for n, h := range hits {
			rows[n] = hitJSON{
				h.ID(), orNull(h.AccountID), orNull(h.KeyID), orNull(string(h.Environment)), h.Stage, h.Side, h.Address, h.Label, orNull(h.IntentID), h.RequestID, h.At,
			}
		}
		encoder := json.NewEncoder(to)
		encoder.SetIndent("", "  ")
		return encoder.Encode(rows)
	}
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "at\tstage\tside\taddress\tlabel\tenvironment\taccount\tkey\tintent\trequest")
	for _, h := range hits {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", h.At.Format(time.RFC3339), h.Stage, h.Side, h.Address, cmp.Or(h.Label, "-"),
			cmp.Or(string(h.Environment), "-"), textOf(h.AccountID), textOf(h.KeyID), textOf(h.IntentID), cmp.Or(h.RequestID, "-"))
	}
	return table.Flush()
}

func textOf(id uuid.UUID) string {
	if id == uuid.Nil {
		return "-"
	}
	return id.String()
}

// accountOf is the id of an account by its id or e-mail address, uuid.Nil for no name.
func accountOf(ctx context.Context, store *rooms.Rooms, name string) (uuid.UUID, error) {
	if name == "" {
		return uuid.Nil, nil
	}
	if id, err := uuid.Parse(name); err == nil {
		return id, nil
	}
	found, err := store.Identities.AccountByEmail(ctx, name)
	if errors.Is(err, account.ErrNotFound) {
		return uuid.Nil, fmt.Errorf("no account has the e-mail address %q", name)
	}
	if err != nil {
		return uuid.Nil, err
	}
	return found.ID, nil
}

// findScreened runs `core screening find ADDRESS`: where the files state it, whether it is listed, and which intents have it.
func findScreened(ctx context.Context, text string, to io.Writer) error {
	address, ok := list.ParseAddress(text)
	if !ok {
		return usageError(fmt.Sprintf("%q must be an address of 0x and 40 hexadecimal digits; %s", text, string(screeningUsage)))
	}
	spelled, err := caip.ParseAddress(address.String())
	if err != nil {
		return err
	}
	config, err := readConfig(func(c Config, f *settings.Faults) { c.checkDatabase(f); c.checkScreening(f) })
	if err != nil {
		return err
	}
	files, err := list.ReadAll(config.screeningPaths())
	if err != nil {
		return fmt.Errorf("CORE_SCREENING_FILE: %w", err)
	}
	printPlaces(files, address, to)
	if spelled == screening.TestAddress {
		fmt.Fprintln(to, "it is the test address, which is always listed in the environment test where screening is on")
	}
	return withStore(func(store *rooms.Rooms) error {
		if err := store.CheckMigrated(ctx); err != nil {
			return err
		}
		count := 0
		err := store.Screening.Intents(ctx, spelled, func(i screening.Intent) error {
			count++
			side := screening.SourceSide
			if i.Source != spelled {
				side = screening.DestinationSide
			}
			_, err := fmt.Fprintf(to, "intent %s of account %s: %s, %s, created %s\n", i.ID, i.AccountID, side, i.Status, i.CreatedAt.UTC().Format(time.RFC3339))
			return err
		})
		if err == nil {
			fmt.Fprintf(to, "%d intents have it\n", count)
		}
		return err
	})
}

func printPlaces(files []*list.File, address list.Address, to io.Writer) {
	places := list.Places(files, address)
	for _, p := range places {
		fmt.Fprintf(to, "%s line %d: %s %s\n", p.Path, p.Line, p.Entry, p.Label)
	}
	excepted := slices.ContainsFunc(places, func(p list.Place) bool { return p.Entry[0] == '!' })
	switch {
	case len(files) == 0:
		fmt.Fprintln(to, "CORE_SCREENING_FILE is not set: nothing is listed")
	case excepted:
		fmt.Fprintln(to, "not listed: an entry takes it out")
	case len(places) == 0:
		fmt.Fprintln(to, "not listed")
	default:
		fmt.Fprintln(to, "listed")
	}
}
