package embedded_test

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

func TestRedis(t *testing.T) {
	t.Parallel()
	for name, inProcess := range map[string]bool{"found": false, "in process": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := embedded.StartRedis(t.Context(), embedded.RedisConfig{InProcess: inProcess, Log: func(line string) { t.Log(line) }})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s at %s", r.Source, r.URL)
			t.Cleanup(func() { _ = r.Stop() })
			if got := ask(t, r, "SET key value PX 300"); got != "+OK" {
				t.Fatalf("SET: %s", got)
			}
			if got := ask(t, r, "EXISTS key"); got != ":1" {
				t.Errorf("EXISTS before it expires: %s", got)
			}
			asynctest.Eventually(t, "the key has expired", func() bool { return ask(t, r, "EXISTS key") == ":0" })

			if pid := r.PID(); pid != 0 {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				<-r.Done()
			}
			if err := r.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := ask(t, r, "PING"); got != "+PONG" {
				t.Errorf("PING after a restart: %s", got)
			}
			if err := r.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRedis_External(t *testing.T) {
	t.Parallel()
	r, err := embedded.StartRedis(t.Context(), embedded.RedisConfig{URL: "redis://somewhere:6379/3"})
	if err != nil {
		t.Fatal(err)
	}
	if r.URL != "redis://somewhere:6379/3" || r.PID() != 0 || r.Done() != nil {
		t.Errorf("got %+v", r)
	}
	if err := r.Stop(); err != nil {
		t.Error(err)
	}
}

// ask sends one command and returns the first line of the answer.
func ask(t *testing.T, r *embedded.Redis, command string) string {
	t.Helper()
	target, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	dialer := net.Dialer{Timeout: 5 * time.Second}
	conn, err := dialer.DialContext(t.Context(), "tcp", target.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(command)
	request := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		request += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := conn.Write([]byte(request)); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}
