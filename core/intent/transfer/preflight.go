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
	// SettlerHasCode and SettlerDomain describe the settler of a swap or bridge; SettlerDomain is nil if it does not answer.
	SettlerHasCode bool
	SettlerDomain  *big.Int
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
		c.Detail = fmt.Sprintf("The settler may draw %s units of the token, and the transaction needs %s; send the approval in tx.allowances first.",
			s.Allowance, i.Source.Amount)
	default:
		c.OK = true
		c.Detail = fmt.Sprintf("The settler may draw %s units of the token, and the transaction needs %s.", s.Allowance, i.Source.Amount)
	}
	return c
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
	switch domain := new(big.Int).SetUint64(uint64(i.Settlement.OriginDomain)); {
	case i.Type == Transfer:
		c.OK, c.Detail = true, "A settler is not needed."
	case !s.SettlerHasCode:
		c.Detail = fmt.Sprintf("There is no contract at the settler's address %s.", i.Settlement.OriginSettler)
	case s.SettlerDomain == nil:
		c.Detail = fmt.Sprintf("The contract at %s does not tell its domain, so it is no settler that this service knows.", i.Settlement.OriginSettler)
	case s.SettlerDomain.Cmp(domain) != 0:
		c.Detail = fmt.Sprintf("The settler serves the domain %s, and the order names %s.", s.SettlerDomain, domain)
	default:
		c.OK, c.Detail = true, fmt.Sprintf("The settler serves the order's domain %s.", domain)
	}
	return c
}

// checkSimulation explains a failure by the missing allowance, if it is missing: settlers and tokens revert with many different
// errors then.
func (i *Intent) checkSimulation(s Simulation, allowance Check) Check {
	c := Check{Name: CheckSimulation}
	switch {
	case s.Failure != "" && !allowance.OK:
		c.Detail = "The order cannot be opened before the allowance is in place; grant it, then check again."
	case s.Failure != "":
		c.Detail = s.Failure
	case i.Type == Transfer && len(s.Returned) == common.HashLength && common.Hash(s.Returned) == (common.Hash{}):
		c.Detail = "The token refuses the transfer: it returns false."
	default:
		c.OK, c.Detail = true, "The transaction succeeds at the newest block."
	}
	return c
}

var (
	erc20BalanceOf     = selector("balanceOf(address)")
	erc20Allowance     = selector("allowance(address,address)")
	settlerLocalDomain = selector("localDomain()")
)

// BalanceOfCall returns the calldata of an ERC-20 token's balanceOf, which returns a uint256.
func BalanceOfCall(owner string) ([]byte, error) {
	return appendAddresses(erc20BalanceOf[:], owner)
}

// AllowanceCall returns the calldata of an ERC-20 token's allowance, which returns a uint256.
func AllowanceCall(owner, spender string) ([]byte, error) {
	return appendAddresses(erc20Allowance[:], owner, spender)
}

// LocalDomainCall returns the calldata of a settler's localDomain, which returns a uint32.
func LocalDomainCall() []byte { return settlerLocalDomain[:] }
