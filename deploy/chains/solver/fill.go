package solver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/deploy/chains/contracts"
)

const (
	// deadlineMargin is the minimum time between a fill and the order's deadline. An order expires no earlier, so it is also the
	// time in which the fill is attested and claimed before anybody can refund.
	deadlineMargin = 10 * time.Second
	// mintFactor is the number of orders of the same amount that one mint covers.
	mintFactor = 100
	// maxMultipliedBits is the size of amounts above which mintFactor is not applied, because the product must fit into 256 bits.
	maxMultipliedBits = 128
)

// statusDeposited is the status of an open order at its input settler.
const statusDeposited = 1

// skippedError is the reason why an order is not filled.
type skippedError struct{ reason string }

func (e *skippedError) Error() string { return "the order is skipped: " + e.reason }

// solve pays an order's output on its destination, unless that is done, and claims its input, unless the order has ended. It returns
// a skippedError for an order that it does not fill. What it did before a restart it reads from the chains.
func (f *follower) solve(ctx context.Context, o *order, log *slog.Logger) error {
	destination, err := f.destination(o)
	if err != nil {
		return &skippedError{err.Error()}
	}
	status, err := read[uint8](ctx, f.origin, f.origin.InputSettler, inputSettlerABI, "orderStatus", o.id)
	if err != nil {
		return err
	}
	if status != statusDeposited {
		log.Debug("order has ended", "status", status)
		return nil
	}
	if o.fill == nil {
		if o.fill, err = f.ensureFilled(ctx, o, destination, log); err != nil {
			return err
		}
	}
	if o.fill.Solver != contracts.Word(f.origin.account) {
		return &skippedError{"another solver has filled it"}
	}
	return f.claim(ctx, o, destination, log)
}

// ensureFilled returns the fill of an order, which it pays for if there is none.
func (f *follower) ensureFilled(ctx context.Context, o *order, destination *chain, log *slog.Logger) (*contracts.SolveParams, error) {
	fill, err := destination.filled(ctx, o)
	if err != nil || fill != nil {
		return fill, err
	}
	if err := f.pay(ctx, o, destination, log); err != nil {
		return nil, err
	}
	if fill, err = destination.filled(ctx, o); err == nil && fill == nil {
		err = errors.New("the block with the fill is gone")
	}
	return fill, err
}

// pay fills an order in the name of the origin's account, which claims it.
func (f *follower) pay(ctx context.Context, o *order, destination *chain, log *slog.Logger) error {
	head, err := destination.client.HeaderByNumber(ctx, nil)
	if err != nil {
		return fmt.Errorf("ask for the newest block: %w", err)
	}
	now := max(time.Now().Unix(), int64(head.Time)) //nolint:gosec // block times are small
	switch {
	case now+int64(max(deadlineMargin, f.MinExpiry)/time.Second) > int64(o.FillDeadline):
		return &skippedError{"its deadline is too near"}
	case !f.prices.pays(o, f.PriceMove):
		return &skippedError{"it asks for more than its input is worth or than is paid for one order, or a token has no price"}
	}
	value, amount := new(big.Int), o.output().Amount
	if o.native() {
		value = amount
	} else if err := destination.mintAndApprove(ctx, o.token(), amount); err != nil {
		return err
	}
	solver := contracts.Word(f.origin.account)
	hash, err := destination.transact(ctx, destination.OutputSettler, value, outputSettlerABI, "fillOrderOutputs",
		o.id, o.Outputs, new(big.Int).SetUint64(uint64(o.FillDeadline)), solver[:])
	if err != nil {
		return err
	}
	log.Info("order was filled", "destination", destination.ID, "hash", hash, "amount", amount)
	return nil
}

// claim has the input paid to the origin's account. A bridge is attested by the relay, a swap by the solver itself.
func (f *follower) claim(ctx context.Context, o *order, destination *chain, log *slog.Logger) error {
	if destination == f.origin {
		_, err := f.origin.transact(ctx, f.origin.OutputSettler, nil, outputSettlerABI, "setAttestation", o.id, o.fill.Solver, o.fill.Timestamp, o.output())
		if err != nil {
			return err
		}
	}
	hash, err := f.origin.transact(ctx, f.origin.InputSettler, nil, inputSettlerABI, "finalise",
		o.StandardOrder, []contracts.SolveParams{*o.fill}, contracts.Word(f.origin.account), []byte{})
	if err != nil {
		return err
	}
	log.Info("order was claimed", "hash", hash)
	return nil
}

// mintAndApprove mints a test token if the account has too little of it, and approves the amount for the output settler if the
// allowance is less. An allowance is reset first, as USDT asks for it.
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
	allowance, err := read[*big.Int](ctx, c, token, tokenABI, "allowance", c.account, c.OutputSettler)
	if err != nil || allowance.Cmp(amount) >= 0 {
		return err
	}
	if allowance.Sign() > 0 {
		if _, err := c.transact(ctx, token, nil, tokenABI, "approve", c.OutputSettler, new(big.Int)); err != nil {
			return err
		}
	}
	_, err = c.transact(ctx, token, nil, tokenABI, "approve", c.OutputSettler, amount)
	return err
}
