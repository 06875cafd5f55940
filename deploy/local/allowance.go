package main

import (
	"context"
	"fmt"
	"math/big"
	"strings"

	"intents.internal/pkg/client"
)

// step is a call to send, and the word for it once it is.
type step struct {
	client.Call
	done string
}

// steps returns the calls of a transaction as the chain needs them.
func (n node) steps(ctx context.Context, tx *client.Transaction) (steps []step, err error) {
	granting := min(len(tx.Allowances), len(tx.Calls.Calls))
	for _, needed := range tx.Allowances[:granting] {
		grant, err := n.grant(ctx, needed)
		if err != nil {
			return nil, err
		}
		steps = append(steps, grant...)
	}
	for _, call := range tx.Calls.Calls[granting:] {
		steps = append(steps, step{call, "sent"})
	}
	return steps, nil
}

// grant returns the calls that an allowance needs: one that is enough is not granted again, and one that is neither enough nor zero is set to zero
// first, since some tokens, such as USDT on Ethereum, refuse to change it.
func (n node) grant(ctx context.Context, needed client.Allowance) (steps []step, err error) {
	amount, err := needed.Amount.Int()
	if err != nil {
		return nil, fmt.Errorf("read the amount of an allowance: %w", err)
	}
	granted, err := n.allowance(ctx, needed)
	if err != nil {
		return nil, fmt.Errorf("ask the token %s for the allowance: %w", needed.Token, err)
	}
	if granted.Cmp(amount) >= 0 {
		return nil, nil
	}
	if granted.Sign() > 0 {
		steps = append(steps, step{client.Call{To: needed.Reset.To, Value: "0x0", Data: needed.Reset.Data}, "reset"})
	}
	return append(steps, step{client.Call{To: needed.Approve.To, Value: "0x0", Data: needed.Approve.Data}, "approved"}), nil
}

// allowance asks the token how much the spender may draw from the owner.
func (n node) allowance(ctx context.Context, needed client.Allowance) (*big.Int, error) {
	const selector = "0xdd62ed3e" // allowance(address,address)
	word := func(address string) string { return strings.Repeat("0", 24) + strings.TrimPrefix(address, "0x") }
	question := map[string]string{"to": address(needed.Token), "data": selector + word(needed.Owner) + word(needed.Spender)}
	var returned string
	if err := n.call(ctx, &returned, "eth_call", question, "latest"); err != nil {
		return nil, err
	}
	granted, ok := new(big.Int).SetString(strings.TrimPrefix(returned, "0x"), 16)
	if !ok {
		return nil, fmt.Errorf("it answers %q", returned)
	}
	return granted, nil
}

// address is the last part of a CAIP-10 id.
func address(id string) string { return id[strings.LastIndexByte(id, ':')+1:] }
