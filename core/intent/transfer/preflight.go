package transfer

import (
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"intents.internal/core/intent/token"
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
)

// Check is the result of one check of a transaction.
type Check struct {
	Name CheckName
	OK   bool
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
	// Approved means that the transaction was simulated after the calls that grant its allowance.
	Approved bool
	// Returned is what the simulated transaction returns.
	Returned []byte
	// Failure is one sentence on why the simulated transaction fails, empty if it succeeds.
	Failure string
}

// Preflight checks what an intent's transaction needs before it is sent.
func (i *Intent) Preflight(tx *Tx, s Simulation, now time.Time) []Check {
	allowance := i.checkAllowance(tx, s)
	return []Check{i.checkBalance(s), allowance, i.checkDeadline(now), i.checkSettler(s), i.checkSimulation(s, allowance)}
}

func (i *Intent) checkBalance(s Simulation) Check {
	c := Check{Name: CheckBalance}
	switch {
	case s.Balance == nil:
		c.Detail = "The token's contract does not tell the account's balance."
	case s.Balance.Cmp(i.Source.Amount) < 0:
		c.Detail = fmt.Sprintf("The account has %s units of the token, and the transaction needs %s.", s.Balance, i.Source.Amount)
	default:
		c.OK = true
		c.Detail = fmt.Sprintf("The account has %s units of the token, and the transaction needs %s.", s.Balance, i.Source.Amount)
	}
	if s.Balance != nil && token.Native(i.Source.Token) {
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
	case s.Allowance.Cmp(i.Source.Amount) < 0:
		c.Detail = fmt.Sprintf("The settler may draw %s units of the token, and the transaction needs %s; send the approval in tx.allowances first%s.",
			s.Allowance, i.Source.Amount, resetFirst(s.Allowance))
	default:
		c.OK = true
		c.Detail = fmt.Sprintf("The settler may draw %s units of the token, and the transaction needs %s.", s.Allowance, i.Source.Amount)
	}
	return c
}

// resetFirst is what precedes the approval where an allowance stands.
func resetFirst(allowance *big.Int) string {
	if allowance.Sign() == 0 {
		return ""
	}
	return ", and its reset before that, since some tokens refuse to change an allowance that is not 0"
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

// checkSimulation explains a failure by the missing allowance, if it is missing and was not simulated: settlers and tokens revert with
// many different errors then.
func (i *Intent) checkSimulation(s Simulation, allowance Check) Check {
	c := Check{Name: CheckSimulation}
	switch {
	case s.Failure != "" && !allowance.OK && !s.Approved:
		c.Detail = "The order cannot be opened before the allowance is in place; grant it, then check again."
	case s.Failure != "":
		c.Detail = s.Failure
	case i.Type == Transfer && len(s.Returned) == common.HashLength && common.Hash(s.Returned) == (common.Hash{}):
		c.Detail = "The token refuses the transfer: it returns false."
	case s.Approved:
		c.OK, c.Detail = true, "The approval and then the transaction succeed at the newest block."
	default:
		c.OK, c.Detail = true, "The transaction succeeds at the newest block."
	}
	return c
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
