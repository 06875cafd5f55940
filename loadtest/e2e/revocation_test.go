package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"intents.internal/deploy/stack"
)

// promise is how long after a change, or after its last moment, a gateway may still let a key in.
const promise = time.Second

// A key that is deleted, disabled, expired or rotated, or whose account is gone, is refused by every gateway within a
// second, whatever becomes of core and Redis meanwhile.
//
// The second is the gateway's own: a request that began later than that can only have been judged later. So however long
// requests take on a busy machine, none that begins after the second may be let in.
func TestRevocation_AllGateways(t *testing.T) {
	t.Parallel()
	// A hanging core must not hold the load up.
	s, redis := ownStack(t, 3, "GATEWAY_CORE_TIMEOUT=2s")
	owner := newPerson(t, s.Env().GatewayURL)
	var crowd []string
	for range 60 {
		crowd = append(crowd, owner.newKey(t).Key)
	}
	r := &revocations{stack: s, load: startLoad(t, s.Env().GatewayURLs, crowd)}

	everyChange := func(t *testing.T) {
		t.Helper()
		var all sync.WaitGroup
		for _, c := range changes { // all at once, and none waits for its turn among other tests
			all.Go(func() { t.Run(c.name, func(t *testing.T) { r.change(t, c) }) })
		}
		all.Wait()
	}
	t.Run("under load, beside a long transaction", func(t *testing.T) {
		conn, err := pgx.Connect(t.Context(), s.Env().DatabaseURL)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.WithoutCancel(t.Context()))
		if _, err := conn.Exec(t.Context(), `BEGIN; SELECT pg_current_xact_id()`); err != nil {
			t.Fatal(err)
		}
		everyChange(t)
	})
	for _, c := range changes {
		t.Run("core killed at the commit/"+c.name, func(t *testing.T) { r.changeAndKill(t, c) })
	}
	for _, c := range changes[:3] { // however the key ends, it is the silence that keeps it out
		t.Run("core hanging from the commit on/"+c.name, func(t *testing.T) { r.changeAndHang(t, c) })
	}
	if err := redis.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Run("without Redis", everyChange)
}

// change ends a key.
type change struct {
	name string
	// lasting is for how long the key still works.
	lasting time.Duration
	// make makes the change and returns the key's successor, if it has one.
	make func(ctx context.Context, r *revocations, s subject) (successor string, err error)
}

var changes = []change{
	{"deleted", 0, post("/auth/api-key/delete", map[string]any{})},
	{"disabled", 0, post("/auth/api-key/update", map[string]any{"enabled": false})},
	{"expiring in a second", time.Second, post("/auth/api-key/update", map[string]any{"expiresIn": 1})},
	{"expired by hand", 0, func(ctx context.Context, r *revocations, s subject) (string, error) {
		return "", executeOn(ctx, r.stack.Env().DatabaseURL, `UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE id = $1`, s.key.ID)
	}},
	{"restricted to another network", 0, post("/auth/api-key/update", map[string]any{"networks": []string{"192.0.2.0/24"}})},
	{"rotated", 0, post("/auth/api-key/rotate", map[string]any{})},
	{"rotated with three seconds of grace", 3 * time.Second, post("/auth/api-key/rotate", map[string]any{"gracePeriod": 3})},
	{"account deleted", 0, func(_ context.Context, _ *revocations, s subject) (string, error) {
		return "", s.send("/auth/delete-user", map[string]any{"password": s.password}, nil)
	}},
	{"account disabled by the operator", 0, func(ctx context.Context, r *revocations, s subject) (string, error) {
		command := exec.CommandContext(ctx, filepath.Join(binaries, "core"), "accounts", "disable", s.email)
		command.Env = append(stack.Environ(), "CORE_DATABASE_URL="+r.stack.Env().DatabaseURL)
		if out, err := command.CombinedOutput(); err != nil {
			return "", fmt.Errorf("%w: %s", err, out)
		}
		return "", nil
	}},
}

func post(path string, body map[string]any) func(context.Context, *revocations, subject) (string, error) {
	return func(_ context.Context, _ *revocations, s subject) (string, error) {
		full := map[string]any{"keyId": s.key.ID}
		maps.Copy(full, body)
		var answer createdKey
		err := s.send(path, full, &answer)
		return answer.Key, err
	}
}

// subject is the owner of a key that all gateways are asked with.
type subject struct {
	person
	key         createdKey
	observation *observation
}

// revocations is a stack whose gateways are under load.
type revocations struct {
	stack *stack.Stack
	load  *load
}

// subject is somebody new, once all gateways have accepted the key.
func (r *revocations) subject(t *testing.T) subject {
	t.Helper()
	s := subject{person: newPerson(t, r.stack.Env().GatewayURL)}
	s.key = s.newKey(t)
	s.observation = r.load.watch(t, s.key.Key)
	s.observation.await(t, "accepted the new key", func(at taken) bool { return !at.lastAccepted.IsZero() })
	return s
}

func (r *revocations) change(t *testing.T, c change) {
	t.Helper()
	s := r.subject(t)
	began, successor := time.Now(), ""
	eventually(t, func() (err error) {
		successor, err = c.make(t.Context(), r, s)
		return err
	})
	end := r.end(t, s, c, began, time.Now())
	if successor != "" {
		r.mustWork(t, successor)
	}
	r.mustBeRefused(t, s, c, end)
}

// changeAndKill kills core as soon as the change is committed, whether or not it was answered.
func (r *revocations) changeAndKill(t *testing.T, c change) {
	t.Helper()
	s, began := r.subject(t), time.Now()
	committed, successor := r.commit(t, s, c, func() error { return r.stack.Kill(stack.Core) })
	r.mustBeRefused(t, s, c, r.end(t, s, c, began, committed))
	if err := r.stack.AwaitReady(t.Context(), stack.Core); err != nil {
		t.Fatal(err)
	}
	if key := <-successor; key != "" {
		r.mustWork(t, key)
	}
}

// changeAndHang stops core in its tracks as soon as the change is committed, until nobody gets in any more.
func (r *revocations) changeAndHang(t *testing.T, c change) {
	t.Helper()
	s, began := r.subject(t), time.Now()
	pid := r.stack.Env().PID(stack.Core)
	wake := func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
	t.Cleanup(wake)
	committed, successor := r.commit(t, s, c, func() error { return syscall.Kill(pid, syscall.SIGSTOP) })
	end := r.end(t, s, c, began, committed)
	s.observation.await(t, "denied the key since its end", func(at taken) bool { return at.lastDenied.After(end.Add(promise)) })
	wake()
	r.mustBeRefused(t, s, c, end)
	<-successor
}

// commit makes the change, and strikes as soon as the database has it. It returns when that was, and where the key's
// successor will be told, empty if the answer is lost.
func (r *revocations) commit(t *testing.T, s subject, c change, strike func() error) (committed time.Time, successor <-chan string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), r.stack.Env().DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	state := func() (state string) {
		if err := conn.QueryRow(t.Context(), `SELECT coalesce(max(concat(to_jsonb(k) - 'last_used_at', to_jsonb(a))), '')
			FROM api_keys k JOIN accounts a ON a.id = k.account_id WHERE k.id = $1`, s.key.ID).Scan(&state); err != nil {
			t.Fatal(err)
		}
		return state
	}
	before, struck := state(), make(chan struct{})
	told := make(chan string, 1)
	go func() {
		for {
			successor, err := c.make(t.Context(), r, s)
			select {
			case <-struck:
			default:
				if err != nil && t.Context().Err() == nil {
					continue // core was killed a moment ago, in another test
				}
			}
			told <- successor
			return
		}
	}()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(time.Minute); state() == before; <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatal("the change is not in the database")
		}
	}
	committed = time.Now()
	close(struck)
	if err := strike(); err != nil {
		t.Fatal(err)
	}
	return committed, told
}

// end is the key's last moment: that of the change, or what the change has left it, which must be what was asked for.
func (r *revocations) end(t *testing.T, s subject, c change, began, changed time.Time) time.Time {
	t.Helper()
	var expires *time.Time
	queryRow(t, r.stack.Env().DatabaseURL, &expires, `SELECT max(expires_at) FROM api_keys WHERE id = $1`, s.key.ID)
	if expires == nil {
		expires = &time.Time{}
	}
	// The database rounds to a microsecond.
	if asked := began.Add(c.lasting - time.Millisecond); c.lasting > 0 && expires.Before(asked) {
		t.Errorf("the key ends at %s, before %s", expires, asked)
	}
	return later(changed, *expires)
}

// mustBeRefused waits until every gateway refuses the key for good, and wants that none let it in, and none refused it,
// when it should not have.
func (r *revocations) mustBeRefused(t *testing.T, s subject, c change, end time.Time) {
	t.Helper()
	state := s.observation.await(t, "refused the key since its end", func(at taken) bool {
		return at.lastRefused.After(end.Add(promise)) && at.lastRefused.After(at.lastAccepted)
	})
	for n, at := range state {
		over := at.lastAccepted.Sub(end)
		t.Logf("gateway %d: let in last %.3f s, refused first %.3f s after the key's end; answers %v",
			n+1, over.Seconds(), at.firstRefusal.Sub(end).Seconds(), at.statuses)
		if over > promise {
			t.Errorf("gateway %d let a request in that began %s after the key's end", n+1, over)
		}
		if c.lasting > 0 && at.firstRefusal.Before(end) {
			t.Errorf("gateway %d refused the key %s before its end", n+1, end.Sub(at.firstRefusal))
		}
	}
}

// mustWork wants every gateway to take the key, and none ever to have refused it.
func (r *revocations) mustWork(t *testing.T, key string) {
	t.Helper()
	state := r.load.watch(t, key).await(t, "accepted the successor", func(at taken) bool { return !at.lastAccepted.IsZero() })
	for n, at := range state {
		if !at.firstRefusal.IsZero() {
			t.Errorf("gateway %d refused the successor: %v", n+1, at.statuses)
		}
	}
}
