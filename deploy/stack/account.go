package stack

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"strings"
	"time"
)

// accountFile is where the account is remembered; only the user who runs the stack can read it.
const accountFile = "account.json"

// account is the demo account. It is made through the public interface, as any client's would be.
type account struct {
	Email    string `json:"email"`
	Password string `json:"password"`
	TestKey  string `json:"testKey"`
	LiveKey  string `json:"liveKey"`
}

// ensureAccount signs in to the remembered account, or signs up for one, and sees to it that both its keys work.
func (s *Stack) ensureAccount(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("gave up after a minute"))
	defer cancel()
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	client := client{base: s.gateways[0].url(), http: &http.Client{Transport: direct.Transport, Jar: jar, Timeout: 15 * time.Second}}
	if s.account, err = client.enter(ctx, s.account); err != nil {
		return fmt.Errorf("make the demo account: %w", err)
	}
	for environment, key := range map[string]*string{"test": &s.account.TestKey, "live": &s.account.LiveKey} {
		if err := client.ensureKey(ctx, environment, key); err != nil {
			return fmt.Errorf("make the demo account's %s key: %w", environment, err)
		}
	}
	return writeAccount(s.path(accountFile), s.account)
}

// readAccount returns the remembered account, or a new one that nobody has signed up for yet.
func readAccount(path string) (account, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return account{Email: "demo@example.com", Password: rand.Text()}, nil
	}
	if err != nil {
		return account{}, fmt.Errorf("read the remembered account: %w", err)
	}
	var saved account
	if err := json.Unmarshal(text, &saved); err != nil {
		return account{}, fmt.Errorf("read the remembered account in %s (start over with --reset): %w", path, err)
	}
	return saved, nil
}

func writeAccount(path string, a account) error {
	text, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return fmt.Errorf("remember the account: %w", err)
	}
	draft := path + ".new"
	if err := os.WriteFile(draft, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("remember the account: %w", err)
	}
	if err := os.Rename(draft, path); err != nil {
		return fmt.Errorf("remember the account: %w", err)
	}
	return nil
}

// client is a browser that is signed in once enter has returned.
type client struct {
	base string
	http *http.Client
}

// enter signs in to a, or signs up for it. An account of that name with another password belongs to someone else who uses
// the same database: then it signs up under a new name.
func (c client) enter(ctx context.Context, a account) (account, error) {
	if a.TestKey != "" {
		err := c.post(ctx, "/auth/sign-in/email", map[string]string{"email": a.Email, "password": a.Password}, nil)
		if err == nil || !refused(err) {
			return a, err
		}
	}
	fresh := account{Email: a.Email, Password: a.Password}
	err := c.signUp(ctx, fresh)
	if refused(err) {
		fresh.Email = "demo-" + strings.ToLower(rand.Text()[:8]) + "@example.com"
		err = c.signUp(ctx, fresh)
	}
	return fresh, err
}

func (c client) signUp(ctx context.Context, a account) error {
	return c.post(ctx, "/auth/sign-up/email", map[string]string{"name": "Demo", "email": a.Email, "password": a.Password}, nil)
}

// ensureKey makes a new key unless the present one is accepted.
func (c client) ensureKey(ctx context.Context, environment string, key *string) error {
	if *key != "" {
		works, err := c.accepts(ctx, *key)
		if works || err != nil {
			return err
		}
	}
	var created struct {
		Key string `json:"key"`
	}
	err := c.post(ctx, "/auth/api-key/create", map[string]string{"name": "demo " + environment + " key", "environment": environment}, &created)
	if err == nil && created.Key == "" {
		err = errors.New("the answer holds no key")
	}
	*key = created.Key
	return err
}

// accepts tells whether the gateway lets key through, whatever it answers then.
func (c client) accepts(ctx context.Context, key string) (bool, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/v2/tokens?chain-id=eip155:1", nil)
	if err != nil {
		return false, err
	}
	request.Header.Set("X-Api-Key", key)
	response, err := c.http.Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	return response.StatusCode != http.StatusUnauthorized && response.StatusCode != http.StatusForbidden, nil
}

// answerError is an answer other than 200.
type answerError struct {
	path   string
	status int
	body   string
}

func (e *answerError) Error() string {
	return fmt.Sprintf("POST %s answers %d %s", e.path, e.status, e.body)
}

// refused tells whether err is an answer that blames the request.
func refused(err error) bool {
	var answer *answerError
	return errors.As(err, &answer) && answer.status >= 400 && answer.status < 500 && answer.status != http.StatusTooManyRequests
}

func (c client) post(ctx context.Context, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return &answerError{path, response.StatusCode, strings.TrimSpace(string(answer))}
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(answer, into)
}
