package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"intents.internal/pkg/testkit/embedded"
)

// assignAddresses creates the services with their addresses.
func (s *Stack) assignAddresses(ctx context.Context) error {
	host, port, err := net.SplitHostPort(s.config.Listen)
	if err != nil {
		return fmt.Errorf("--listen must be host:port, such as 127.0.0.1:8080: %w", err)
	}
	if port != "0" {
		if err := checkAvailable(ctx, s.config.Listen); err != nil {
			return err
		}
	}
	for n := range s.config.Cores {
		name := CoreName(n + 1)
		core := &service{name: name, program: "core", log: s.log.writer(name)}
		if err := errors.Join(setFreeAddress("", &core.listen), setFreeAddress("", &core.ops)); err != nil {
			return err
		}
		s.cores = append(s.cores, core)
	}
	for n := range s.config.Gateways {
		name := GatewayName(n + 1)
		gateway := &service{name: name, program: "gateway", log: s.log.writer(name)}
		err := errors.Join(setFreeAddress(host, &gateway.listen), setFreeAddress("", &gateway.ops))
		if err != nil {
			return err
		}
		if n == 0 && port != "0" {
			gateway.listen = s.config.Listen
		}
		s.gateways = append(s.gateways, gateway)
	}
	return nil
}

// checkAvailable returns an error if this process cannot listen on the address.
func checkAvailable(ctx context.Context, address string) error {
	var listen net.ListenConfig
	listener, err := listen.Listen(ctx, "tcp", address)
	if err == nil {
		return listener.Close()
	}
	port, portErr := embedded.FreePort("")
	if portErr != nil {
		return errors.Join(err, portErr)
	}
	return fmt.Errorf("cannot listen on %s (%w): stop what uses it, or choose another, such as --listen 127.0.0.1:%d", address, err, port)
}

func setFreeAddress(host string, address *string) error {
	port, err := embedded.FreePort(host)
	if host == "" {
		host = "127.0.0.1"
	}
	*address = net.JoinHostPort(host, strconv.Itoa(port))
	return err
}

// dialAddress is the address to dial for a listen address, which may be the unspecified one.
func dialAddress(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
