package transfer

import (
	"math"
	"time"

	"intents.internal/core/registry"
)

// Settlement holds the scheme and the contracts of an order, as they were when the intent was created, so that a later import of chains
// changes no order.
type Settlement struct {
	// Scheme is how the order is encoded and identified: registry.StandardOrder, which Order implements. Intents of earlier versions have
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
		return Settlement{Scheme: registry.StandardOrder, Expires: deadline}, d.checkSigning(true)
	}
	var preferred deployment
	if err := d.deployments(func(p deployment) (more bool) { preferred = p; return false }); err != nil {
		return Settlement{}, err
	}
	if err := d.checkSigning(true); err != nil {
		return Settlement{}, err
	}
	return d.settlementOf(preferred, deadline)
}

// deployment is one deployment on both chains of an order.
type deployment struct{ origin, destination registry.Settlement }

// contracts are those of a deployment, without the time at which the order expires.
func (d *draft) contracts(p deployment) Settlement {
	s := Settlement{
		Scheme: p.origin.Scheme, Deployment: p.origin.Deployment,
		InputSettler: p.origin.InputSettler, OutputSettler: p.destination.OutputSettler,
		InputOracle: p.origin.Oracle, OutputOracle: p.destination.Oracle,
	}
	switch {
	case d.kind == Swap: // the output settler proves its own fills
		s.InputOracle, s.OutputOracle = s.OutputSettler, s.OutputSettler
	case p.origin.OutputOracle == registry.OriginOracle:
		s.OutputOracle = p.origin.Oracle
	}
	return s
}

// settlementOf returns the contracts of an order by a deployment.
func (d *draft) settlementOf(p deployment, deadline time.Time) (Settlement, error) {
	s := d.contracts(p)
	s.Expires = deadline.Add(time.Duration(p.origin.ClaimPeriod) * time.Second)
	if s.Expires.Unix() > math.MaxUint32 {
		return Settlement{}, reject(InvalidDeadline, "The deadline and the claim period of %d seconds of %s do not fit the 32 bits of an order.",
			p.origin.ClaimPeriod, d.sourceChain.ID).at("/deadline")
	}
	return s, nil
}

// minDeadline is what the solvers of the order need from now to its deadline: those of the preferred deployment, or for a quote of any that can
// execute it. It is 0 where none can, which is reported later.
func (d *draft) minDeadline() (longest time.Duration) {
	if d.kind == Transfer {
		return 0
	}
	if d.quoted != nil {
		return time.Duration(d.quoted.origin.MinDeadline) * time.Second
	}
	_ = d.deployments(func(p deployment) (more bool) {
		longest = max(longest, time.Duration(p.origin.MinDeadline)*time.Second)
		return d.quoting
	})
	return longest
}

// minDeadlineOf is that of a deployment on a chain as it is now, 0 where the chain does not have it.
func minDeadlineOf(source registry.Chain, deployment string) time.Duration {
	for _, s := range source.Settlements {
		if s.Deployment == deployment {
			return time.Duration(s.MinDeadline) * time.Second
		}
	}
	return 0
}

// find returns the deployment that can execute the order and has exactly the contracts of a settlement.
func (d *draft) find(s Settlement) (same deployment, found bool) {
	_ = d.deployments(func(p deployment) (more bool) {
		contracts := d.contracts(p)
		contracts.Expires = s.Expires
		same, found = p, contracts == s
		return !found
	}) // without one it visits none
	return same, found
}

// deployments visits the deployments that can execute the order, in the source chain's order of preference, while visit returns true: at least
// one, or it returns a rejection.
func (d *draft) deployments(visit func(deployment) (more bool)) error {
	for _, c := range []*registry.Chain{&d.sourceChain, &d.destinationChain} {
		if len(c.Settlements) == 0 {
			return reject(SettlerNotConfigured, "No settlement is configured on %s, so no %s can be executed there.", c.ID, d.kind)
		}
	}
	native, found, refused, unsigned := registry.Native(d.source.Token), false, false, false
	for _, origin := range d.sourceChain.Settlements {
		for _, destination := range d.destinationChain.Settlements {
			switch {
			case origin.Scheme != destination.Scheme || origin.Deployment != destination.Deployment, d.kind == Swap && !origin.SameChain:
			case !d.takesSignatures(origin):
				unsigned = true
			case native && !origin.Native && d.request.Signing == "":
				refused = true
			default:
				if found = true; !visit(deployment{origin, destination}) {
					return nil
				}
			}
		}
	}
	switch {
	case found:
		return nil
	case unsigned:
		return d.checkSigning(false)
	case refused:
		return reject(NativeNotSupported, "No deployment that executes this %s takes the native token of %s as input; use its wrapped token.",
			d.kind, d.sourceChain.ID).at("/source/token")
	case d.kind == Swap:
		return reject(SettlerNotConfigured, "No deployment on %s fills orders on its own chain, so no swap can be executed there.", d.sourceChain.ID)
	default:
		return reject(SettlerNotConfigured, "%s and %s have no deployment in common, so no bridge can be executed between them.",
			d.sourceChain.ID, d.destinationChain.ID)
	}
}
