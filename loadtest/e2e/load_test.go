package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// ownStack is a stack whose processes a test may stop and kill, with a Redis that is the test's to stop.
func ownStack(t *testing.T, gateways int, gatewayEnv ...string) (*stack.Stack, *embedded.Redis) {
	t.Helper()
	redis := ownRedis(t)
	var log asynctest.Buffer
	s, err := stack.Start(t.Context(), stack.Config{
		Mail: receiveMail,
		Data: t.TempDir(), Binaries: binaries, Listen: "127.0.0.1:0", Gateways: gateways, Ephemeral: true, Log: &log,
		CoreEnv:    append([]string{"CORE_KEYS_PER_ACCOUNT=1000"}, oneAddress...),
		GatewayEnv: append([]string{"GATEWAY_LIMIT_BUDGET=2s"}, gatewayEnv...),
		RedisURL:   redis.URL,
	})
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log("the stack's log:\n" + log.String())
		}
	})
	return s, redis
}

// ownRedis is one that no other test's gateways count on.
func ownRedis(t *testing.T) *embedded.Redis {
	t.Helper()
	redis, err := embedded.StartRedis(t.Context(), embedded.RedisConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := redis.Stop(); err != nil {
			t.Error(err)
		}
	})
	return redis
}

// person is an account, signed in.
type person struct {
	*client
	email, password string
}

// newPerson signs up at the gateway with this address.
func newPerson(t *testing.T, gateway string) person {
	t.Helper()
	p := person{client: browserClient(t), password: "correct horse battery"}
	p.base = gateway
	eventually(t, func() error {
		p.email = fmt.Sprintf("person-%d@example.com", time.Now().UnixNano())
		return p.send("/auth/sign-up/email", map[string]any{"name": "Person", "email": p.email, "password": p.password}, nil)
	})
	token := mailedLink(t, p.email).Query().Get("token")
	repeated := false
	eventually(t, func() error {
		a, err := p.try(http.MethodGet, "/auth/verify-email?token="+token, nil)
		// A link works once. If the answer to its first use was lost, signing in tells whether it worked.
		used := repeated && a.Status == http.StatusUnauthorized
		if repeated = true; err == nil && a.Status != http.StatusOK && !used {
			err = fmt.Errorf("the link answered %d %s", a.Status, a.Body)
		}
		return err
	})
	eventually(t, func() error {
		return p.send("/auth/sign-in/email", map[string]any{"email": p.email, "password": p.password}, nil)
	})
	return p
}

func (p person) newKey(t *testing.T) (created createdKey) {
	t.Helper()
	eventually(t, func() error { return p.send("/auth/api-key/create", map[string]any{"name": "key"}, &created) })
	return created
}

// send posts, and any answer but 200 is an error.
func (p person) send(path string, body, into any) error {
	a, err := p.try(http.MethodPost, path, body)
	switch {
	case err != nil:
		return err
	case a.Status != http.StatusOK:
		return fmt.Errorf("POST %s answered %d %s", path, a.Status, a.Body)
	case into == nil:
		return nil
	default:
		return json.Unmarshal(a.Body, into)
	}
}

// eventually does something that may fail for a while, because core was killed a moment ago.
func eventually(t *testing.T, do func() error) {
	t.Helper()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(time.Minute); ; <-ticker.C {
		err := do()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

const (
	workers = 4 // of each gateway, half of them for the crowd
	pace    = 20 * time.Millisecond
)

// load asks every gateway all the time: with the keys of a crowd, and with keys that are observed.
type load struct {
	t        *testing.T
	gateways []string
	crowd    []*observation

	mu      sync.Mutex
	watched []*observation
}

// startLoad runs until the test ends, and then wants that nobody of the crowd was ever refused.
func startLoad(t *testing.T, gateways, crowd []string) *load {
	t.Helper()
	l := &load{t: t, gateways: gateways}
	for _, key := range crowd {
		l.crowd = append(l.crowd, newObservation(key, len(gateways)))
	}
	var all sync.WaitGroup
	for gateway := range gateways {
		for worker := range workers {
			all.Go(func() { l.work(gateway, worker) })
		}
	}
	t.Cleanup(func() {
		all.Wait() // the test's context has ended
		statuses := map[int]int{}
		for _, one := range l.crowd {
			for _, at := range one.state() {
				for status, count := range at.statuses {
					statuses[status] += count
				}
			}
		}
		if statuses[http.StatusForbidden]+statuses[http.StatusUnauthorized] > 0 {
			t.Errorf("keys that nobody touched were refused: %v", statuses)
		}
		t.Logf("answers to the crowd by status: %v", statuses)
	})
	return l
}

func (l *load) work(gateway, worker int) {
	c := apiClient(l.t, "")
	c.base = l.gateways[gateway]
	ticker := time.NewTicker(pace)
	defer ticker.Stop()
	for n := 0; ; n++ {
		select {
		case <-l.t.Context().Done():
			return
		case <-ticker.C:
		}
		one := l.choose(worker, n)
		c.key = one.key
		began := time.Now()
		a, err := c.try(http.MethodGet, "/v2/chains", nil, "If-None-Match", "*")
		switch {
		case err == nil:
			one.note(gateway, began, a)
		case l.t.Context().Err() == nil:
			l.t.Error(err)
		}
	}
}

// choose takes turns. Without anybody to watch, all is the crowd's.
func (l *load) choose(worker, n int) *observation {
	l.mu.Lock()
	defer l.mu.Unlock()
	if worker%2 == 0 && len(l.watched) > 0 {
		return l.watched[(n+worker/2)%len(l.watched)]
	}
	return l.crowd[(n+worker*len(l.crowd)/workers)%len(l.crowd)]
}

// watch has every gateway asked with the key from now on, until the test ends.
func (l *load) watch(t *testing.T, key string) *observation {
	t.Helper()
	one := newObservation(key, len(l.gateways))
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watched = append(l.watched, one)
	t.Cleanup(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		var rest []*observation
		for _, other := range l.watched {
			if other != one {
				rest = append(rest, other)
			}
		}
		l.watched = rest
	})
	return one
}
