package api_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/pgtest"
	"intents.internal/core/transfer"
	"intents.internal/core/watch/watched"
	"intents.internal/core/web/webtest"
	"intents.internal/pkg/caip"
)

// txHash is a transaction hash that is the same digit throughout.
func txHash(digit string) string { return "0x" + strings.Repeat(digit, 64) }

func reportOf(hash string) string { return fmt.Sprintf(`{"hash":%q}`, hash) }

var sepolia = caip.EIP155Chain(11155111)

// transactionOn is a transaction with the effect of its role, which counts.
func transactionOn(chain caip.ChainID, role transfer.Role, digit string, block uint64) transfer.Transaction {
	return transfer.Transaction{
		Role: role, Chain: chain, Hash: common.HexToHash(txHash(digit)), State: transfer.Mined, Confirmed: true,
		Block: &transfer.Block{Number: block, Hash: common.BigToHash(new(big.Int).SetUint64(block))},
	}
}

// observe writes what a watcher has seen of an intent on one chain.
func (s *service) observe(t *testing.T, owner uuid.UUID, location string, progress watched.Progress, seen ...transfer.Transaction) {
	t.Helper()
	write := intents.ChainWrite{Progress: &progress}
	for _, transaction := range seen {
		write.Seen = append(write.Seen, intents.Observation{
			AccountID: owner, TransferID: uuid.MustParse(strings.TrimPrefix(location, "/v2/transfers/")), Transaction: transaction,
		})
	}
	lease := pgtest.AcquireLease(t, s.Store, seen[0].Chain, time.Minute)
	if _, err := s.Store.Intents.WriteChain(t.Context(), lease, write); err != nil {
		t.Fatal(err)
	}
	if err := s.Store.Watched.ReleaseLease(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
}

func TestReportTransaction(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := uuid.New()
	account := webtest.Keyed(owner, "test")
	_, location, _ := s.CreateTransfer(t, webtest.TransferBody, account...)
	orderID := "/v2/transfers/" + pgtest.LookUp[string](t, s.Store, `SELECT '0x' || encode(order_id, 'hex') FROM transfers`)

	expected := s.Call(t, "GET", location, "", account...)
	record := expected.Body.(map[string]any)
	attempt := func(digit string) string {
		return `{"role":"send","chainId":"eip155:11155111","hash":"` + txHash(digit) + `","state":"pending","blockNumber":null,"seenAt":"<time>","explorerUrl":"` + onSepolia(digit) + `"}`
	}
	for _, report := range []struct{ path, hash, carrier, transactions string }{
		{location, txHash("A"), txHash("a"), attempt("a")},
		{location, txHash("a"), txHash("a"), attempt("a")},
		{orderID, txHash("b"), txHash("b"), attempt("a") + "," + attempt("b")},
		{location, txHash("a"), txHash("b"), attempt("a") + "," + attempt("b")},
	} {
		record["transactions"] = webtest.Want(t, 0, "["+report.transactions+"]").Body
		record["status"], record["metadata"] = "submitted", map[string]any{"chainId": "eip155:11155111", "hash": report.carrier}
		webtest.Same(t, report.hash, expected, s.Call(t, "POST", report.path+"/transaction", reportOf(report.hash), account...))
	}
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM transactions WHERE reported AND state = 'pending' AND role = 'send'`); n != 2 {
		t.Errorf("%d attempts of two", n)
	}
}

func TestReportTransaction_Refused(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := webtest.Keyed(uuid.New(), "test")
	_, location, _ := s.CreateTransfer(t, webtest.TransferBody, account...)
	const rule = "must be a transaction hash: 0x and 64 hexadecimal digits"
	for name, c := range map[string]struct {
		body string
		want webtest.Answer
	}{
		"no body":          {"", webtest.Refused(t, 415, "UNSUPPORTED_MEDIA_TYPE", "Send the body as application/json.")},
		"too long":         {strings.Repeat(" ", 16<<10+1), webtest.TooLarge(t)},
		"an array":         {`[]`, webtest.Invalid(t, "", "must be an object")},
		"an empty object":  {`{}`, webtest.Invalid(t, "/hash", "is required")},
		"null":             {`{"hash":null}`, webtest.Invalid(t, "/hash", "must not be null")},
		"a number":         {`{"hash":1}`, webtest.Invalid(t, "/hash", "must not be a JSON number")},
		"an empty hash":    {reportOf(""), webtest.Invalid(t, "/hash", rule)},
		"a digit short":    {reportOf(txHash("a")[:65]), webtest.Invalid(t, "/hash", rule)},
		"a digit too many": {reportOf(txHash("a") + "a"), webtest.Invalid(t, "/hash", rule)},
		"no prefix":        {reportOf(txHash("a")[2:]), webtest.Invalid(t, "/hash", rule)},
		"0X":               {reportOf("0X" + txHash("a")[2:]), webtest.Invalid(t, "/hash", rule)},
		"no hexadecimal":   {reportOf(txHash("g")), webtest.Invalid(t, "/hash", rule)},
		"unknown member":   {`{"hash":"` + txHash("a") + `","chainId":1}`, webtest.Invalid(t, "/chainId", "is not a known field")},
		"twice":            {`{"hash":"` + txHash("a") + `","hash":"` + txHash("a") + `"}`, webtest.Invalid(t, "/hash", "is not valid JSON: duplicate object member name")},
		"cut off":          {`{"hash":"` + txHash("a"), webtest.Invalid(t, "/hash", "is not valid JSON: unexpected EOF")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			webtest.Same(t, name, c.want, s.Call(t, "POST", location+"/transaction", c.body, account...))
		})
	}
	t.Run("no effect", func(t *testing.T) {
		t.Parallel()
		webtest.Same(t, "query", webtest.Invalid(t, "now", "is not a known parameter"), s.Call(t, "POST", location+"/transaction?now=1", reportOf(txHash("a")), account...))
		webtest.Same(t, "another account", webtest.Refused(t, 404, "NOT_FOUND", "The account has no such transfer."),
			s.Call(t, "POST", location+"/transaction", reportOf(txHash("a")), webtest.Keyed(uuid.New(), "test")...))
		if record, _ := s.Call(t, "GET", location, "", account...).Body.(map[string]any); record["status"] != "created" {
			t.Errorf("the record changed: %v", record)
		}
	})
}

// Once a transaction has carried the intent, its own hash is known and every other one comes too late.
func TestReportTransaction_Carried(t *testing.T) {
	t.Parallel()
	s := start(t)
	owner := uuid.New()
	account := webtest.Keyed(owner, "test")
	_, location, _ := s.CreateTransfer(t, webtest.TransferBody, account...)
	s.Call(t, "POST", location+"/transaction", reportOf(txHash("a")), account...)
	s.observe(t, owner, location, watched.Progress{Head: 111, Confirmed: 100, Final: 88}, transactionOn(sepolia, transfer.RoleSend, "a", 100))
	late := webtest.Conflict(t, "confirmed", "Another transaction has carried this intent; read it again. "+
		"The hash of a user operation is no transaction hash: report the transaction that its bundler sent.")
	webtest.Same(t, "another hash", late, s.Call(t, "POST", location+"/transaction", reportOf(txHash("b")), account...))
	if again := s.Call(t, "POST", location+"/transaction", reportOf(txHash("A")), account...); again.Status != 200 || again.Body.(map[string]any)["status"] != "confirmed" {
		t.Errorf("the hash that confirmed it: %+v", again)
	}
}
