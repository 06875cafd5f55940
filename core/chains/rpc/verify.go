package rpc

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// verifyEvery is how long a verified chain id is valid, unless a failure occurs.
	verifyEvery = time.Hour
	// verifyWrongEvery is how often a provider that served another chain is checked again.
	verifyWrongEvery = time.Minute
)

// verification is what is known of the chain that a provider serves.
type verification struct {
	mu      sync.Mutex
	due     time.Time
	wrong   bool
	problem string
}

func (v *verification) state() (due, wrong bool, problem string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return !time.Now().Before(v.due), v.wrong, v.problem
}

// expire triggers a check before the next request, because another node may respond from now on.
func (v *verification) expire() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.wrong {
		v.due = time.Time{}
	}
}

func (v *verification) set(due time.Duration, wrong bool, problem string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.due, v.wrong, v.problem = time.Now().Add(due), wrong, problem
}

// Problem is why the provider is not used or could not be verified, empty if there is none.
func (p *Provider) Problem() string {
	_, _, problem := p.verified.state()
	return problem
}

// verifyWhenDue verifies the provider, so that no call is sent to one of another chain.
func (p *Provider) verifyWhenDue(ctx context.Context) error {
	due, wrong, problem := p.verified.state()
	switch {
	case wrong:
		return fmt.Errorf("%s: %w: %s", p.host, ErrWrongChain, problem)
	case due:
		return p.verify(ctx)
	}
	return nil
}

// verify gets the node's chain id.
func (p *Provider) verify(ctx context.Context) error {
	_, wrong, problem := p.verified.state()
	id := ChainID()
	err := p.send(ctx, []*call{&id.call})
	if err == nil {
		err = id.err
	}
	switch {
	case err != nil && wrong:
		p.verified.set(verifyWrongEvery, true, problem)
		return err
	case err != nil:
		p.verified.set(0, false, err.Error())
		return err
	case id.value != p.number:
		p.verified.set(verifyWrongEvery, true, fmt.Sprintf("the node serves eip155:%d, not %s", id.value, p.chain))
		return fmt.Errorf("%s: %w: %s", p.host, ErrWrongChain, p.Problem())
	}
	p.verified.set(verifyEvery, false, "")
	return nil
}
