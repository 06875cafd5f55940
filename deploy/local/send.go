package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// walletTx has the fields that are read of a transaction for wallets.
type walletTx struct {
	Calls struct {
		From  string `json:"from"`
		Calls []call `json:"calls"`
	} `json:"calls"`
	ChainID    uint64      `json:"chainId"`
	Allowances []allowance `json:"allowances"`
}

// allowance is an ERC-20 allowance that a transaction needs. The first calls of walletTx grant them, in the same order.
type allowance struct {
	Token   string `json:"token"` // a CAIP-10 account id
	Owner   string `json:"owner"`
	Spender string `json:"spender"`
	Amount  string `json:"amount"`
	Reset   call   `json:"reset"`
}

type call struct {
	To    string `json:"to"`
	Value string `json:"value,omitempty"`
	Data  string `json:"data"`
}

// intent has the fields that are read of an intent.
type intent struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Status string `json:"status"`
	// Reference is refund-me for orders that the demonstration solver does not fill.
	Reference string    `json:"reference"`
	Order     order     `json:"order"`
	Tx        *walletTx `json:"tx"`
}

type order struct {
	// Expires is the Unix time after which the order can be refunded.
	Expires int64 `json:"expires"`
}

// sender sends the transactions of intents to the local chains of a running stack, in place of a wallet.
type sender struct {
	env  map[string]string
	api  api
	http *http.Client
	out  io.Writer
}

func newSender(env map[string]string, out io.Writer) *sender {
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{}} // ignores the proxies of the environment
	return &sender{env: env, api: api{env["GATEWAY_URL"], env["TEST_KEY"], client}, http: client, out: out}
}

// send sends the transaction of an intent and reports its hash.
func (s *sender) send(ctx context.Context, id string) error {
	intent, err := s.read(ctx, id)
	if err != nil {
		return err
	}
	if intent.Status != "created" || intent.Tx == nil {
		return fmt.Errorf("the %s %s is %s: only an intent that is created, before its deadline, is sent", intent.Type, intent.ID, intent.Status)
	}
	node, err := s.node(ctx, intent.Tx.ChainID)
	if err != nil {
		return err
	}
	if err := s.checkBalance(ctx, intent, node); err != nil {
		return err
	}
	hash, err := s.sendCalls(ctx, node, intent.Tx)
	if err != nil {
		return err
	}
	var reported struct {
		Status string `json:"status"`
	}
	if err := s.api.call(ctx, http.MethodPost, "/v2/transfers/"+intent.ID+"/transaction", map[string]string{"hash": hash}, &reported); err != nil {
		return fmt.Errorf("report the hash %s: %w", hash, err)
	}
	next := "confirmed"
	switch {
	case intent.Type == "transfer":
	case intent.Reference == "refund-me":
		next = "confirmed; from " + time.Unix(intent.Order.Expires, 0).Format(time.TimeOnly) + " on the same command with --refund gets the money back"
	default:
		next = "confirmed and then filled"
	}
	s.printf("reported the last hash: the %s is %s, and soon %s. Its events:\n", intent.Type, reported.Status, next)
	s.printf("\n  curl -s \"%s/v2/events?wait=25\" -H 'x-api-key: %s'\n", s.api.base, s.api.key)
	return nil
}

// refund sends the transaction that refunds an order. Core learns of it from the chain, so it is not reported.
func (s *sender) refund(ctx context.Context, id string) error {
	intent, err := s.read(ctx, id)
	if err != nil {
		return err
	}
	var answer struct {
		Tx walletTx `json:"tx"`
	}
	err = s.api.call(ctx, http.MethodGet, "/v2/transfers/"+intent.ID+"/refund", nil, &answer)
	var failure *apiError
	if errors.As(err, &failure) && failure.Code == "NOT_REFUNDABLE" {
		return fmt.Errorf("the %s %s is %s and not refundable now: an order is once it is confirmed, has expired and nobody has filled it",
			intent.Type, intent.ID, intent.Status)
	}
	if err != nil {
		return fmt.Errorf("ask for the refund of %s: %w", intent.ID, err)
	}
	node, err := s.node(ctx, answer.Tx.ChainID)
	if err != nil {
		return err
	}
	if _, err := s.sendCalls(ctx, node, &answer.Tx); err != nil {
		return err
	}
	s.printf("the settler has returned the money: the %s is refunded within seconds:\n", intent.Type)
	s.printf("\n  curl -s %s/v2/transfers/%s -H 'x-api-key: %s'\n", s.api.base, intent.ID, s.api.key)
	return nil
}

// read reads an intent by its id or order id.
func (s *sender) read(ctx context.Context, id string) (intent intent, err error) {
	err = s.api.call(ctx, http.MethodGet, "/v2/transfers/"+url.PathEscape(id), nil, &intent)
	var failure *apiError
	if errors.As(err, &failure) && (failure.Status == http.StatusNotFound || failure.Status == http.StatusBadRequest) {
		return intent, fmt.Errorf("the demo account has no intent with the id or order id %s", id)
	}
	if err != nil {
		return intent, fmt.Errorf("read the intent %s: %w", id, err)
	}
	return intent, nil
}

// node is the local node of a chain, which answers for that chain.
func (s *sender) node(ctx context.Context, chain uint64) (node, error) {
	address := s.env[fmt.Sprintf("CHAIN_%d_RPC_URL", chain)]
	if address == "" {
		return node{}, fmt.Errorf("eip155:%d is no local chain of this stack: sign and send the intent's tx with a wallet, and report its hash", chain)
	}
	n := node{address, s.http}
	var id string
	if err := n.call(ctx, &id, "eth_chainId"); err != nil {
		hint := "the stack starts it again within seconds"
		if s.env["CHAINS_PID"] == "" {
			hint = "the local chains are still being built or started; the output of the stack says when they are ready"
		}
		return node{}, fmt.Errorf("the local chain eip155:%d at %s: %w; %s", chain, address, err, hint)
	}
	if want := fmt.Sprintf("0x%x", chain); id != want {
		return node{}, fmt.Errorf("%s serves chain %s, not %s", address, id, want)
	}
	return n, nil
}

// checkBalance returns an error if the sender has too little of the source token.
func (s *sender) checkBalance(ctx context.Context, intent intent, node node) error {
	var preflight struct {
		Checks []struct {
			Name   string `json:"name"`
			OK     bool   `json:"ok"`
			Detail string `json:"detail"`
		} `json:"checks"`
	}
	if err := s.api.call(ctx, http.MethodGet, "/v2/transfers/"+intent.ID+"/preflight", nil, &preflight); err != nil {
		return fmt.Errorf("check the intent before it is sent: %w", err)
	}
	for _, check := range preflight.Checks {
		if check.Name == "balance" && !check.OK {
			return fmt.Errorf("%s\n%s", check.Detail, faucetHint(node, intent.Tx.Calls.From))
		}
	}
	return nil
}

// sendCalls sends the calls one after the other and returns the hash of the last.
func (s *sender) sendCalls(ctx context.Context, node node, tx *walletTx) (hash string, err error) {
	steps, err := node.steps(ctx, tx)
	if err != nil {
		return "", err
	}
	for n, step := range steps {
		hash, err = node.send(ctx, transaction{tx.Calls.From, step.To, step.Value, step.Data})
		if err != nil {
			return "", explain(err, node, tx.Calls.From, fmt.Sprintf("transaction %d of %d to %s", n+1, len(steps), step.To))
		}
		s.printf("%-9s %s (transaction %d of %d on eip155:%d)\n", step.done, hash, n+1, len(steps), tx.ChainID)
	}
	return hash, nil
}

// explain adds advice to the error of a transaction.
func explain(err error, node node, from, attempted string) error {
	err = fmt.Errorf("send %s: %w", attempted, err)
	var refused *rpcError
	if !errors.As(err, &refused) {
		return err
	}
	switch {
	case strings.Contains(refused.Message, "insufficient funds"):
		return fmt.Errorf("%w\n%s", err, faucetHint(node, from))
	case strings.Contains(refused.Message, "unknown account"):
		return fmt.Errorf("%w\n%s is none of the chain's unlocked accounts, which eth_accounts lists: send the intent's tx with its own wallet", err, from)
	}
	return err
}

// faucetHint says how to fund an account.
func faucetHint(node node, account string) string {
	return fmt.Sprintf("fund %s with ether and test tokens:\n\n  curl -s %s -H 'content-type: application/json' "+
		`-d '{"jsonrpc": "2.0", "id": 1, "method": "faucet_fund", "params": [%q]}'`, account, node.url, account)
}

func (s *sender) printf(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format, args...) }
