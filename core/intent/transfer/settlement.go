package transfer

import (
	"math"
	"time"

	"intents.internal/core/intent/chain"
	"intents.internal/core/intent/token"
)

// Settlement holds the scheme and the contracts of an order, as they were when the intent was created, so that a later import of chains
// changes no order.
type Settlement struct {
	// Scheme is how the order is encoded and identified: chain.StandardOrder, which Order implements. Intents of earlier versions have
	// others: see ErrScheme.
	Scheme string
	// Deployment names the contracts in the registry. It is empty for a transfer.
	Deployment string
	// InputSettler, OutputSettler, InputOracle and OutputOracle are EVM addresses, all empty for a transfer.
	InputSettler, OutputSettler string
	InputOracle, OutputOracle   string
	// Expires is the time after which the sender can be refunded, in whole seconds. It is the deadline of a transfer.
	Expires time.Time
}

// settlement selects the contracts of the order, and rejects an intent that cannot be executed.
func (d *draft) settlement(deadline time.Time) (Settlement, error) {
	if d.kind == Transfer {
		return Settlement{Scheme: chain.StandardOrder, Expires: deadline}, nil
	}
	origin, destination, err := d.deployment()
	if err != nil {
		return Settlement{}, err
	}
	s := Settlement{
		Scheme: origin.Scheme, Deployment: origin.Deployment, InputSettler: origin.InputSettler, OutputSettler: destination.OutputSettler,
		InputOracle: origin.Oracle, OutputOracle: destination.Oracle,
		Expires: deadline.Add(time.Duration(origin.ClaimPeriod) * time.Second),
	}
	switch {
	case d.kind == Swap: // the output settler proves its own fills
		s.InputOracle, s.OutputOracle = s.OutputSettler, s.OutputSettler
	case origin.OutputOracle == chain.Origin:
		s.OutputOracle = origin.Oracle
	}
	if s.Expires.Unix() > math.MaxUint32 {
		return Settlement{}, reject(InvalidDeadline, "The deadline and the claim period of %d seconds of %s do not fit the 32 bits of an order.",
			origin.ClaimPeriod, d.sourceChain.ID).at("/deadline")
	}
	return s, nil
}

// deployment returns the source chain's first deployment that the destination has too and that can execute the order, on both chains.
func (d *draft) deployment() (origin, destination chain.Settlement, err error) {
	for _, c := range []chain.Chain{d.sourceChain, d.destinationChain} {
		if len(c.Settlements) == 0 {
			return origin, destination, reject(SettlerNotConfigured, "No settlement is configured on %s, so no %s can be executed there.", c.ID, d.kind)
		}
	}
	native, refused := token.Native(d.source.Token), false
	for _, origin := range d.sourceChain.Settlements {
		for _, destination := range d.destinationChain.Settlements {
			switch {
			case origin.Scheme != destination.Scheme || origin.Deployment != destination.Deployment, d.kind == Swap && !origin.SameChain:
			case native && !origin.Native:
				refused = true
			default:
				return origin, destination, nil
			}
		}
	}
	switch {
	case refused:
		err = reject(NativeNotSupported, "No deployment that executes this %s takes the native token of %s as input; use its wrapped token.",
			d.kind, d.sourceChain.ID).at("/source/token")
	case d.kind == Swap:
		err = reject(SettlerNotConfigured, "No deployment on %s fills orders on its own chain, so no swap can be executed there.", d.sourceChain.ID)
	default:
		err = reject(SettlerNotConfigured, "%s and %s have no deployment in common, so no bridge can be executed between them.",
			d.sourceChain.ID, d.destinationChain.ID)
	}
	return chain.Settlement{}, chain.Settlement{}, err
}
