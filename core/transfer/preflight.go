package transfer

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/registry"
)

// CheckName is the name of a check.
type CheckName string

// The checks of a transaction before it is sent.
const (
	CheckBalance    CheckName = "balance"
	CheckAllowance  CheckName = "allowance"
	CheckDeadline   CheckName = "deadline"
	CheckSettler    CheckName = "settler"
	CheckSimulation CheckName = "simulation"
	// The checks of an intent that is signed alone.
	CheckSignature     CheckName = "signature"
	CheckNonce         CheckName = "nonce"
	CheckAuthorization CheckName = "authorization"
)

// Check is the result of one check of a transaction.
type Check struct {
	Name CheckName
	// OK is false for what makes the sending fail.
	OK bool
	// Needed means that what is checked is missing and that the calls which are sent bring it, or the user's signature.
	Needed bool
	// Unknown means that no node can tell before the transaction is sent.
	Unknown bool
	// Detail is one sentence.
	Detail string
}

// Simulation is a source chain node's simulation of an intent's transaction that is not sent yet.
type Simulation struct {
	// Balance is the source account's balance of the source token, nil if the token's contract does not answer.
	Balance *big.Int
	// Allowance is the settler's ERC-20 allowance, nil if the contract does not answer or none is needed.
	Allowance *big.Int
	// SettlerHasCode and OrderStatus are of the input settler of a swap or bridge; OrderStatus is nil if it tells none.
	SettlerHasCode bool
	OrderStatus    *OrderStatus
	// Steps are the simulated calls, of which the last is the transaction itself.
	Steps []Step
	// Unknown means that the node cannot simulate the steps after those that succeed.
	Unknown bool
	// Returned is what the simulated transaction returns.
	Returned []byte
	// Failure is one sentence on why a step fails, and Failed its name; empty if none does.
	Failure string
	Failed  StepName
}

// Preflight checks what an intent's transaction needs before its steps are sent.
func (i *Intent) Preflight(tx *Tx, s Simulation, now time.Time) []Check {
	return []Check{i.checkBalance(s), i.checkAllowance(tx, s), i.checkDeadline(now), i.checkSettler(s), i.checkSimulation(tx, s)}
}

func (i *Intent) checkBalance(s Simulation) Check {
	c := Check{Name: CheckBalance}
	if s.Balance == nil {
		c.Detail = "The token's contract does not tell the account's balance."
	} else {
		c.OK = s.Balance.Cmp(i.Source.Amount) >= 0
		c.Detail = fmt.Sprintf("The account has %s units of the token, and the transaction needs %s.", s.Balance, i.Source.Amount)
	}
	if s.Balance != nil && registry.Native(i.Source.Token) {
		c.Detail = fmt.Sprintf("The account has %s wei, and the transaction needs %s and its gas.", s.Balance, i.Source.Amount)
	}
	return c
}

func (i *Intent) checkAllowance(tx *Tx, s Simulation) Check {
	c := Check{Name: CheckAllowance}
	switch {
	case len(tx.Allowances) == 0:
		c.OK, c.Detail = true, "An allowance is not needed."
	case s.Allowance == nil:
		c.Detail = "The token's contract does not tell the settler's allowance."
	case !tx.Allows(s.Allowance):
		c.OK, c.Needed = true, true
		c.Detail = fmt.Sprintf("The settler may draw %s units of the token, and the transaction needs %s; %s.", s.Allowance, i.Source.Amount, granting(s.Steps))
	default:
		c.OK = true
		c.Detail = fmt.Sprintf("The settler may draw %s units of the token, and the transaction needs %s.", s.Allowance, i.Source.Amount)
	}
	return c
}

// granting is how the steps grant an allowance.
func granting(steps []Step) string {
	if steps[0].Name == StepReset {
		return "the reset and the approval that are sent first grant it, since some tokens refuse to change an allowance that is not 0"
	}
	return "the approval that is sent first grants it"
}

func (i *Intent) checkDeadline(now time.Time) Check {
	left := i.Deadline.Sub(now).Truncate(time.Second)
	if left <= 0 {
		return Check{Name: CheckDeadline, Detail: "The deadline has passed."}
	}
	return Check{Name: CheckDeadline, OK: true, Detail: fmt.Sprintf("The deadline is %s ahead.", left)}
}

func (i *Intent) checkSettler(s Simulation) Check {
	c := Check{Name: CheckSettler}
	switch {
	case !i.HasOrder():
		c.OK, c.Detail = true, "A settler is not needed."
	case !s.SettlerHasCode:
		c.Detail = fmt.Sprintf("There is no contract at the input settler's address %s.", i.Settlement.InputSettler)
	case s.OrderStatus == nil:
		c.Detail = fmt.Sprintf("The contract at %s does not tell the order's status, so it is no input settler.", i.Settlement.InputSettler)
	case *s.OrderStatus == OrderNone:
		c.OK, c.Detail = true, "The input settler has not opened the order yet."
	case *s.OrderStatus == OrderDeposited:
		c.Detail = "The order is open already, which anybody can do for the sender; nothing needs to be sent."
	default:
		c.Detail = "The order was opened and has ended; it cannot be opened again."
	}
	return c
}

func (i *Intent) checkSimulation(tx *Tx, s Simulation) Check {
	c := Check{Name: CheckSimulation}
	switch {
	case s.Failure != "":
		c.Detail = s.Failure + i.insteadOf(tx, s)
	case s.Unknown:
		c.OK, c.Unknown = true, true
		c.Detail = "The node cannot simulate the transaction after its approval, so neither whether it succeeds nor its gas is known before the approval is in a block."
	case i.Type == Transfer && len(s.Returned) == common.HashLength && common.Hash(s.Returned) == (common.Hash{}):
		c.Detail = "The token refuses the transfer: it returns false."
	default:
		c.OK, c.Detail = true, succeeding(s.Steps)
	}
	return c
}

// insteadOf says what to do about an approval that fails where an allowance stands: some tokens, such as USDT on Ethereum, refuse to change it.
func (i *Intent) insteadOf(tx *Tx, s Simulation) string {
	switch {
	case s.Failed != StepApproval || s.Allowance == nil || s.Allowance.Sign() == 0:
		return ""
	case tx.Allows(s.Allowance):
		return " The allowance is in place: send the transaction without the approval."
	default:
		return " Some tokens refuse to change an allowance that is not 0: send the reset in tx.allowances, then check again."
	}
}

// succeeding names the steps that succeed.
func succeeding(steps []Step) string {
	last := len(steps) - 1
	if last == 0 {
		return fmt.Sprintf("The %s succeeds at the newest block.", steps[0].Name)
	}
	before := make([]string, last)
	for n, step := range steps[:last] {
		before[n] = "the " + string(step.Name)
	}
	return fmt.Sprintf("T%s and then the %s succeed at the newest block.", strings.Join(before, ", ")[1:], steps[last].Name)
}

var (
	erc20BalanceOf = selector("balanceOf(address)")
	erc20Allowance = selector("allowance(address,address)")
)

// BalanceOfCall returns the calldata of an ERC-20 token's balanceOf, which returns a uint256.
func BalanceOfCall(owner string) ([]byte, error) {
	return appendAddresses(erc20BalanceOf[:], owner)
}

// AllowanceCall returns the calldata of an ERC-20 token's allowance, which returns a uint256.
func AllowanceCall(owner, spender string) ([]byte, error) {
	return appendAddresses(erc20Allowance[:], owner, spender)
}
