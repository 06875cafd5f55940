package solver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

const (
	// deadlineMargin is the minimum time between a fill and the order's deadline.
	deadlineMargin = 10 * time.Second
	// mintFactor is the number of orders of the same amount that one mint covers.
	mintFactor = 100
	// maxMultipliedBits is the size of amounts above which mintFactor is not applied, because the product must fit into 256 bits.
	maxMultipliedBits = 128

	statusOpened = "OPENED"
	statusFilled = "FILLED"
)

// errNotConnected is returned until the domain of every chain was read.
var errNotConnected = errors.New("not all chains have answered yet")

// skippedError is the reason why an order is not filled.
type skippedError struct{ reason string }

func (e *skippedError) Error() string { return "the order is skipped: " + e.reason }

// fill pays an order's output on its destination and sends the message that makes the origin pay the input out, unless the order has
// ended. It returns a skippedError for an order that it does not fill.
func (f *follower) fill(ctx context.Context, o *order, log *slog.Logger) error {
	if o.fault != nil {
		return &skippedError{o.fault.Error()}
	}
	atOrigin, err := f.origin.status(ctx, o.id)
	if err != nil {
		return err
	}
	if atOrigin != statusOpened {
		log.Debug("order has ended", "status", atOrigin)
		return nil
	}
	destination, err := f.destination(o)
	if err != nil {
		return err
	}
	if destination == f.origin {
		return f.pay(ctx, o, destination, log)
	}
	atDestination, err := destination.status(ctx, o.id)
	if err != nil {
		return err
	}
	switch atDestination {
	case "":
		if err := f.pay(ctx, o, destination, log); err != nil {
			return err
		}
	case statusFilled: // before a restart, or by another solver: anyone may send the message, also repeatedly
	default:
		return &skippedError{"its status on the destination is " + atDestination}
	}
	return f.settle(ctx, o, destination, log)
}

// destination is the chain on which an order is filled.
func (f *follower) destination(o *order) (*chain, error) {
	allChecked := true
	for _, c := range f.chains {
		domain, sameChain, checked := c.settlement()
		allChecked = allChecked && checked
		if !checked || domain != o.terms.DestinationDomain {
			continue
		}
		if o.terms.DestinationSettler != [32]byte(common.BytesToHash(c.Settler[:])) {
			return nil, &skippedError{"its destination's settler is unknown"}
		}
		if c == f.origin && !sameChain {
			return nil, &skippedError{"the settler fills no orders of its own chain"}
		}
		return c, nil
	}
	if !allChecked {
		return nil, errNotConnected
	}
	return nil, &skippedError{fmt.Sprintf("its destination, the domain %d, is unknown", o.terms.DestinationDomain)}
}

// pay fills an order.
func (f *follower) pay(ctx context.Context, o *order, destination *chain, log *slog.Logger) error {
	head, err := destination.client.HeaderByNumber(ctx, nil)
	if err != nil {
		return fmt.Errorf("ask for the newest block: %w", err)
	}
	now := max(time.Now().Unix(), int64(head.Time)) //nolint:gosec // block times are small
	if now+int64(deadlineMargin/time.Second) > int64(o.terms.FillDeadline) {
		return &skippedError{"its deadline is too near"}
	}
	value := new(big.Int)
	if o.native() {
		value = o.terms.AmountOut
		err = destination.requireNative(ctx, value)
	} else {
		err = destination.mintAndApprove(ctx, o.outputToken(), o.terms.AmountOut)
	}
	if err != nil {
		return err
	}
	receiver := common.LeftPadBytes(f.origin.account[:], common.HashLength) // the recipient of the input on the origin
	hash, err := destination.transact(ctx, destination.Settler, value, settlerABI, "fill", o.id, o.encoded, receiver)
	if err != nil {
		return err
	}
	log.Info("order was filled", "destination", destination.ID, "hash", hash, "amount", o.terms.AmountOut)
	return nil
}

// settle has the destination's settler send the message that the order was filled.
func (f *follower) settle(ctx context.Context, o *order, destination *chain, log *slog.Logger) error {
	fee, err := read[*big.Int](ctx, destination, destination.Settler, settlerABI, "quoteGasPayment", o.terms.OriginDomain)
	if err != nil {
		return err
	}
	hash, err := destination.transact(ctx, destination.Settler, fee, settlerABI, "settle", [][32]byte{o.id})
	if err != nil {
		return err
	}
	log.Info("order's settlement was sent", "destination", destination.ID, "hash", hash)
	return nil
}

// requireNative returns a skippedError unless the balance exceeds the amount, because the account also pays for gas.
func (c *chain) requireNative(ctx context.Context, amount *big.Int) error {
	balance, err := c.client.BalanceAt(ctx, c.account, nil)
	if err != nil {
		return fmt.Errorf("ask for the balance: %w", err)
	}
	if balance.Cmp(amount) <= 0 {
		return &skippedError{"it asks for more of the native asset than there is"}
	}
	return nil
}

// mintAndApprove mints a test token if the account has too little of it, and approves the amount for the settler if the allowance is less.
func (c *chain) mintAndApprove(ctx context.Context, token common.Address, amount *big.Int) error {
	code, err := c.client.CodeAt(ctx, token, nil)
	if err != nil {
		return fmt.Errorf("ask for the token's code: %w", err)
	}
	if len(code) == 0 {
		return &skippedError{"its output token is no contract"}
	}
	balance, err := read[*big.Int](ctx, c, token, tokenABI, "balanceOf", c.account)
	if err != nil {
		return err
	}
	if balance.Cmp(amount) < 0 {
		minted := new(big.Int).Sub(amount, balance)
		if amount.BitLen() <= maxMultipliedBits {
			minted.Mul(amount, big.NewInt(mintFactor))
		}
		if _, err := c.transact(ctx, token, nil, tokenABI, "mint", c.account, minted); err != nil {
			return err
		}
	}
	allowance, err := read[*big.Int](ctx, c, token, tokenABI, "allowance", c.account, c.Settler)
	if err != nil {
		return err
	}
	if allowance.Cmp(amount) >= 0 {
		return nil
	}
	_, err = c.transact(ctx, token, nil, tokenABI, "approve", c.Settler, amount)
	return err
}
