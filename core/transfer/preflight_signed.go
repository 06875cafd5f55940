package transfer

import (
	"fmt"
	"math/big"
	"time"

	"intents.internal/pkg/wire"
)

// SignedSimulation is a source chain node's simulation of a signed intent's transaction, which any account sends. Without a signature the node is
// asked everything else.
type SignedSimulation struct {
	Simulation
	// Signed means that there is a signature, and Refused that the user's account, which accepted it when it was given, does not do so now.
	Signed, Refused bool
	// Bitmap is the word of Permit2's bitmap that has the order's nonce, nil if there is no Permit2 or none is needed.
	Bitmap *big.Int
	// AuthorizationUsed is 0 while the token knows no use and no cancellation of the authorization, nil if it does not tell or none is needed.
	AuthorizationUsed *big.Int
	// AuthorizationFailure is one sentence of the token on why it refuses the authorization, empty if it does not.
	AuthorizationFailure string
}

// PreflightSigned checks what the transaction of a signed intent needs before somebody sends it. The order is nil for a transfer.
func (i *Intent) PreflightSigned(order *Order, s SignedSimulation, now time.Time) []Check {
	return []Check{
		i.checkBalance(s.Simulation), i.checkPermit2Allowance(s), i.checkDeadline(now), i.checkSettler(s.Simulation),
		checkSignature(s), i.checkNonce(order, s), i.checkAuthorization(s), i.checkRelay(s),
	}
}

func (i *Intent) checkPermit2Allowance(s SignedSimulation) Check {
	c := Check{Name: CheckAllowance}
	switch {
	case i.Signing.Scheme != wire.Permit2:
		c.OK, c.Detail = true, "An allowance is not needed."
	case s.Allowance == nil:
		c.Detail = "The token's contract does not tell the allowance of Permit2."
	case s.Allowance.Cmp(i.Source.Amount) < 0:
		c.Detail = fmt.Sprintf("Permit2 may draw %s units of the token, and the transaction needs %s: the user approves Permit2 once, or signs signing.permit where it is there.",
			s.Allowance, i.Source.Amount)
	default:
		c.OK, c.Detail = true, fmt.Sprintf("Permit2 may draw %s units of the token, and the transaction needs %s.", s.Allowance, i.Source.Amount)
	}
	return c
}

func checkSignature(s SignedSimulation) Check {
	c := Check{Name: CheckSignature}
	switch {
	case !s.Signed:
		c.OK, c.Needed, c.Detail = true, true, "The user has not signed yet."
	case s.Refused:
		c.Detail = "The source account does not accept its signature any more, as when its owner was changed."
	default:
		c.OK, c.Detail = true, "The source account has signed."
	}
	return c
}

func (i *Intent) checkNonce(order *Order, s SignedSimulation) Check {
	c := Check{Name: CheckNonce}
	switch {
	case i.Signing.Scheme == wire.ERC3009 && s.AuthorizationUsed == nil:
		c.Detail = "The token does not tell whether the authorization was used, so it has no ERC-3009."
	case i.Signing.Scheme == wire.ERC3009 && s.AuthorizationUsed.Sign() != 0:
		c.Detail = "The authorization was used or cancelled; make a new intent."
	case i.Signing.Scheme == wire.Permit2 && s.Bitmap == nil:
		c.Detail = fmt.Sprintf("There is no Permit2 at %s.", Permit2Address)
	case i.Signing.Scheme == wire.Permit2 && order.NonceUsed(s.Bitmap):
		c.Detail = "The order's nonce at Permit2 was used or given up; make a new intent."
	default:
		c.OK, c.Detail = true, "The signature's nonce is unused."
	}
	return c
}

func (i *Intent) checkAuthorization(s SignedSimulation) Check {
	c := Check{Name: CheckAuthorization}
	switch {
	case i.Signing.Scheme != wire.ERC3009:
		c.OK, c.Detail = true, "An authorization is not needed."
	case !s.Signed:
		c.OK, c.Unknown, c.Detail = true, true, "Whether the token takes the authorization is known once it is signed."
	case s.AuthorizationFailure != "":
		c.Detail = "The token refuses the authorization: " + s.AuthorizationFailure
	default:
		c.OK, c.Detail = true, "The token takes the authorization."
	}
	return c
}

func (i *Intent) checkRelay(s SignedSimulation) Check {
	if !s.Signed {
		return Check{Name: CheckSimulation, OK: true, Unknown: true, Detail: "The transaction is simulated once it is signed."}
	}
	return i.checkSimulation(nil, s.Simulation)
}
