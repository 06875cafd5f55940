package apierror

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/postgres"
	"intents.internal/core/quotes"
	"intents.internal/core/quotes/quote"
	"intents.internal/core/screening"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/golden"
	"intents.internal/pkg/wire"
)

// recorded is what clients see of an error.
type recorded struct {
	Body       wire.Error    `json:"body"`
	Status     int           `json:"status"`
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
	Repeated   bool          `json:"repeated,omitempty"`
	Page       Page          `json:"page,omitzero"`
}

// What clients see of every error, with its page of the console. The OpenAPI document takes the examples of errors from the bodies.
func TestOf(t *testing.T) {
	t.Parallel()
	var all []Error
	for _, entry := range errorMap {
		err := entry.err
		if entry.public.Code == "STATUS_CONFLICT" { // whoever returns it says the status
			err = &intents.StatusError{Status: transfer.Confirmed, Err: err}
		}
		f, ok := Of(err)
		if !ok || f.Code != entry.public.Code || f.Message != entry.public.Message {
			t.Errorf("%v is %+v", entry.err, f)
		}
		all = append(all, f)
	}
	failures := []quote.Failure{{Provider: "lifi", Code: quote.ProviderTimeout}, {Provider: "solver", Code: quote.NoQuote}}
	for _, err := range []error{
		&quotes.NoQuoteError{Failures: failures}, &quotes.UnavailableError{Failures: failures[:1]},
		&quotes.UsedError{TransferID: uuid.MustParse("01a1fc6f-ce9b-7799-b600-a8d5f5a6c3a9")},
		context.Canceled, &postgres.OutcomeUnknownError{Err: io.EOF}, &postgres.OutcomeUnknownError{Err: io.EOF, Repeatable: true},
	} {
		f, _ := Of(err)
		all = append(all, f)
	}
	all = append(all, screened(t)...)
	var shown []recorded
	for _, f := range all {
		shown = append(shown, recorded{wire.Error{Code: f.Code, Message: f.Message, Details: f.Details}, f.Status, f.RetryAfter, f.Repeated, f.Page})
	}
	golden.JSON(t, "testdata/errors.json", shown)
}

// screened are the refusals of a listed payer, of a listed recipient, of both, and of a wallet, by an operator without and with a contact.
func screened(t *testing.T) (all []Error) {
	t.Helper()
	listed := caip.AccountID{Chain: caip.EIP155Chain(1), Address: "0x098B716B8Aaf21512996dC57EB0615e2383E2f96"}
	other := caip.AccountID{Chain: caip.EIP155Chain(1), Address: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"}
	path := filepath.Join(t.TempDir(), "list.txt")
	pgtest.Must(t, os.WriteFile(path, []byte(listed.Address+" Lazarus Group"), 0o600))
	for _, contact := range []string{"", "https://example.com/appeals"} {
		screen, err := screening.Open(t.Context(), screening.Config{Paths: []string{path}, Contact: contact, Metrics: prometheus.NewRegistry()})
		pgtest.Must(t, err)
		for _, err := range []error{
			screen.Check(screening.AtCreation, network.Live, listed, other), screen.Check(screening.AtCreation, network.Live, other, listed),
			screen.Check(screening.AtCreation, network.Live, listed, listed), screen.CheckWallet(listed),
		} {
			f, ok := Of(fmt.Errorf("draft: %w", err))
			if text := strings.ToLower(fmt.Sprintf("%+v", f)); !ok || strings.Contains(text, "0x") || strings.Contains(text, "lazarus") || strings.Contains(text, "sanction") {
				t.Errorf("a refusal says %s", text)
			}
			all = append(all, f)
		}
	}
	return all
}

// Clients are told to try again whatever Postgres reports, unless the statement is wrong: postgres.Unavailable decides it of each SQLSTATE.
func TestOf_SQLState(t *testing.T) {
	t.Parallel()
	for state, wrong := range map[string]bool{"53300": false, "57014": false, "ZZZZZ": false, "23505": true, "42601": true} {
		public, ok := Of(fmt.Errorf("insert transfer: %w", &pgconn.PgError{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: state}))
		if ok == wrong || ok && (public.Status != http.StatusServiceUnavailable || public.RetryAfter == 0) {
			t.Errorf("%s: %t, %d, try again in %s", state, ok, public.Status, public.RetryAfter)
		}
	}
}
