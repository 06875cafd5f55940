package outbound_test

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// nameServer answers queries for A and AAAA records over UDP.
type nameServer struct {
	net.Resolver

	mu sync.Mutex
	// answers are each name's, a list for each query in turn; the last one is repeated.
	answers map[string][][]string
	// asked counts the queries of type A.
	asked map[string]int
}

// newNameServer serves on loopback until the test ends.
func newNameServer(t *testing.T, answers map[string][][]string) *nameServer {
	t.Helper()
	conn, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &nameServer{answers: answers, asked: map[string]int{}}
	s.Resolver = net.Resolver{PreferGo: true, StrictErrors: false, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	var serving sync.WaitGroup
	t.Cleanup(func() { _ = conn.Close(); serving.Wait() })
	serving.Go(func() {
		buffer := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			if answer, err := s.answer(buffer[:n]); err == nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	})
	return s
}

func (s *nameServer) answer(query []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(query); err != nil {
		return nil, err
	}
	question := m.Questions[0]
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	name := strings.TrimSuffix(question.Name.String(), ".")
	s.mu.Lock()
	defer s.mu.Unlock()
	turns := s.answers[name]
	if turns == nil {
		m.RCode = dnsmessage.RCodeNameError
		return m.Pack()
	}
	turn := min(s.asked[name], len(turns)-1)
	if question.Type == dnsmessage.TypeA {
		s.asked[name]++
	}
	for _, text := range turns[turn] {
		address := netip.MustParseAddr(text)
		header := dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: dnsmessage.ClassINET}
		switch {
		case address.Is4() && question.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: address.As4()}})
		case address.Is6() && question.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: address.As16()}})
		}
	}
	return m.Pack()
}
