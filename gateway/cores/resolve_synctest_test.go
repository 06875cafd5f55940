package cores_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"intents.internal/gateway/cores"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/metricstest"
)

// names is a resolver that gives every name the same addresses, or an error where there are none.
type names struct {
	mu        sync.Mutex
	addresses []netip.Addr
	asked     int
}

func (n *names) set(addresses ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.addresses, n.asked = nil, 0
	for _, text := range addresses {
		n.addresses = append(n.addresses, netip.MustParseAddr(text))
	}
}

func (n *names) resolve(context.Context, string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	if len(n.addresses) == 0 {
		return nil, errors.New("the name server is down")
	}
	return slices.Clone(n.addresses), nil
}

// resolved counts the answers since set.
func (n *names) resolved() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.asked
}

// addresses are those of the cores, each followed by a star where it is asked.
func (s set) addresses() (all []string) {
	for _, c := range s.All() {
		host, _, _ := net.SplitHostPort(c.Address)
		if c.Up() {
			host += "*"
		}
		all = append(all, host)
	}
	slices.Sort(all)
	return all
}

func (s set) await(t *testing.T, want ...string) {
	t.Helper()
	asynctest.Eventually(t, fmt.Sprintf("the cores are %q", want), func() bool { return slices.Equal(s.addresses(), want) })
}

func TestSet_DNSChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &names{}
		s := newSet(t, n.resolve, "http://core.test:80")
		s.run(t)
		asynctest.Eventually(t, "a name that does not resolve is logged", func() bool {
			return strings.Contains(s.log.String(), "the name server is down") && strings.Contains(s.log.String(), "setting=GATEWAY_CORE_URL")
		})
		n.set("127.0.0.2")
		s.await(t, "127.0.0.2*")
		first := s.transport(0)

		n.set("127.0.0.2", "127.0.0.3")
		s.await(t, "127.0.0.2*", "127.0.0.3*")
		both := map[string]float64{"127.0.0.2:80": 1, "127.0.0.3:80": 1}
		if diff := cmp.Diff(both, metricstest.Of(t, s.registry, "intents_gateway_core_up")); diff != "" {
			t.Errorf("cores that are measured (-want +got):\n%s", diff)
		}
		if first.probes.Load() == 0 || s.transport(1).probes.Load() == 0 {
			t.Error("a core is up that was never probed")
		}

		n.set() // a name server that fails proves nothing
		asynctest.Eventually(t, "it was asked", func() bool { return n.resolved() > 1 })
		s.await(t, "127.0.0.2*", "127.0.0.3*")

		n.set("127.0.0.3")
		s.await(t, "127.0.0.3*")
		if asked := n.resolved(); asked != 3 {
			t.Errorf("a core that answers has left after %d answers without it", asked)
		}
		synctest.Wait()
		if first.closed.Load() != 1 {
			t.Error("the connections to a core that has left stay open")
		}
		if diff := cmp.Diff(map[string]float64{"127.0.0.3:80": 1}, metricstest.Of(t, s.registry, "intents_gateway_core_up")); diff != "" {
			t.Errorf("cores that are measured after one has left (-want +got):\n%s", diff)
		}
	})
}

// What a name server answers, and which cores that means.
func TestSet_AddressesOfName(t *testing.T) {
	t.Parallel()
	many := make([]string, 70)
	for i := range many {
		many[i] = fmt.Sprintf("127.0.1.%d", i+100)
	}
	for name, c := range map[string]struct{ answer, want []string }{
		"both families":        {[]string{"::1", "127.0.0.9"}, []string{"127.0.0.9*"}},
		"IPv6 alone":           {[]string{"::1", "::1"}, []string{"::1*"}},
		"IPv4 as IPv6":         {[]string{"::ffff:127.0.0.9", "127.0.0.9"}, []string{"127.0.0.9*"}},
		"more than a set has":  {many, nil},
		"no answer":            {nil, []string{"core.test*"}},
		"several of one":       {[]string{"127.0.0.8", "127.0.0.9"}, []string{"127.0.0.8*", "127.0.0.9*"}},
		"the same, other turn": {[]string{"127.0.0.9", "127.0.0.8"}, []string{"127.0.0.8*", "127.0.0.9*"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := &names{}
				n.set(c.answer...)
				s := newSet(t, n.resolve, "http://core.test:1")
				s.run(t)
				if len(c.answer) > cores.MaxCores {
					asynctest.Eventually(t, "as many are taken as a set can have, and that is logged", func() bool {
						return len(s.All()) == cores.MaxCores && !strings.Contains(strings.Join(s.addresses(), " "), "core.test") &&
							strings.Contains(s.log.String(), "a gateway has at most 64 cores")
					})
					return
				}
				s.await(t, c.want...)
			})
		})
	}
}
