package cores

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"
)

const (
	// resolveInterval is how often the names of cores are resolved.
	resolveInterval = 2 * time.Second
	// resolveGap is the minimum pause between two resolutions.
	resolveGap = 100 * time.Millisecond
	// resolveTimeout bounds one resolution.
	resolveTimeout = 2 * time.Second
	// maxMissed is how many consecutive resolutions may lack the address of a core that is not down: a name server may omit some
	// addresses.
	maxMissed = 3
)

// lookupNetIP is the system's resolver.
func lookupNetIP(ctx context.Context, host string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

// Run probes the cores and resolves their names until ctx ends.
func (s *Set) Run(ctx context.Context) {
	var probes sync.WaitGroup
	watch := func(c *Core) {
		var watched context.Context
		watched, c.stop = context.WithCancel(ctx)
		probes.Go(func() { s.probeLoop(watched, c) })
	}
	for _, c := range s.All() {
		watch(c)
	}
	for slices.ContainsFunc(s.urls, isName) {
		for _, u := range s.urls {
			s.resolveName(ctx, u, watch)
		}
		if !wait(ctx, resolveGap, nil) || !wait(ctx, jitter(resolveInterval), s.resolveNow) {
			break
		}
	}
	probes.Wait()
}

func isName(u *url.URL) bool {
	_, err := netip.ParseAddr(u.Hostname())
	return err != nil
}

// resolveName resolves the host name of a base URL, and adds and removes cores. A failed resolution changes nothing.
func (s *Set) resolveName(ctx context.Context, u *url.URL, watch func(*Core)) {
	if !isName(u) {
		return
	}
	addresses, err := s.addresses(ctx, u)
	if ctx.Err() != nil {
		return
	}
	if len(addresses) == 0 {
		s.warn(ctx, u, fmt.Sprintf("not resolved: %v", err))
		return
	}
	fault := ""
	for _, address := range addresses {
		if known := s.byAddress(address); known != nil {
			known.missed = 0
		} else if len(s.All()) < MaxCores {
			watch(s.add(u, address, suspect))
			s.log.InfoContext(ctx, "core added", "name", u.Hostname(), "core", address)
		} else {
			fault = fmt.Sprintf("a gateway has at most %d cores", MaxCores)
		}
	}
	s.warn(ctx, u, fault)
	for _, c := range s.All() {
		if c.URL != u || slices.Contains(addresses, c.Address) {
			continue
		}
		c.missed++
		if c.missed >= maxMissed || c.Down() || c.Address == Address(u) {
			s.remove(c)
			s.log.InfoContext(ctx, "core removed", "name", u.Hostname(), "core", c.Address)
		}
	}
}

// addresses returns the host:port of all cores of a name. IPv6 addresses are ignored if the name has IPv4 addresses, because both
// belong to the same cores.
func (s *Set) addresses(ctx context.Context, u *url.URL) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, resolveTimeout)
	defer cancel()
	found, err := s.resolve(ctx, u.Hostname())
	isIPv4 := func(ip netip.Addr) bool { return ip.Unmap().Is4() }
	_, port, _ := net.SplitHostPort(Address(u))
	var all []string
	for _, ip := range found {
		if isIPv4(ip) || !slices.ContainsFunc(found, isIPv4) {
			all = append(all, net.JoinHostPort(ip.Unmap().String(), port))
		}
	}
	slices.Sort(all)
	return slices.Compact(all), err
}

// warn logs a problem with a name, once until it changes.
func (s *Set) warn(ctx context.Context, u *url.URL, fault string) {
	if fault != "" && fault != s.warned[u] {
		s.log.WarnContext(ctx, "cores of a name not all known", "name", u.Hostname(), "setting", "GATEWAY_CORE_URL", "fault", fault)
	}
	s.warned[u] = fault
}

func (s *Set) byAddress(address string) *Core {
	for _, c := range s.All() {
		if c.Address == address {
			return c
		}
	}
	return nil
}
