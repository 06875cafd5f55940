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
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"intents.internal/pkg/testkit/embedded"
)

// accountFile is the file of the account. Only the user who runs the stack can read it.
const accountFile = "account.json"

// firstEmail is the email of the first demo account of a database. Other data directories use another one.
const firstEmail = "demo@example.com"

// account is the demo account. It is created through the public API.
type account struct {
	Email    string `json:"email"`
	Password string `json:"password"`
	TestKey  string `json:"testKey"`
	LiveKey  string `json:"liveKey"`
}

// ensureAccount signs in to the stored account or signs up, and replaces keys that are not accepted.
func (s *Stack) ensureAccount(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 3*time.Minute, errors.New("gave up after three minutes"))
	defer cancel()
	jar, err := cookiejar.New(nil)
	if err != nil {
		return err
	}
	client := client{base: s.gateways[0].url(), mails: s.mails, http: &http.Client{Transport: noProxy.Transport, Jar: jar, Timeout: 15 * time.Second}}
	if s.account, err = client.signIn(ctx, s.account); err != nil {
		return fmt.Errorf("create the demo account: %w", err)
	}
	for environment, key := range map[string]*string{"test": &s.account.TestKey, "live": &s.account.LiveKey} {
		if err := client.ensureKey(ctx, environment, key); err != nil {
			return fmt.Errorf("create the demo account's %s key: %w", environment, err)
		}
	}
	return writeAccount(s.path(accountFile), s.account)
}

// readAccount returns the stored account, or one to sign up for.
func readAccount(path string) (account, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return account{Email: firstEmail, Password: rand.Text()}, nil
	}
	if err != nil {
		return account{}, fmt.Errorf("read the stored account: %w", err)
	}
	var saved account
	if err := json.Unmarshal(text, &saved); err != nil {
		return account{}, fmt.Errorf("read the stored account in %s (start over with --reset): %w", path, err)
	}
	return saved, nil
}

func writeAccount(path string, a account) error {
	text, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return fmt.Errorf("store the account: %w", err)
	}
	if err := writePrivate(path, append(text, '\n')); err != nil {
		return fmt.Errorf("store the account: %w", err)
	}
	return nil
}

// client is a client of the gateway with a cookie jar, signed in after signIn.
type client struct {
	base  string
	http  *http.Client
	mails <-chan embedded.Mail
}

// signIn signs in to a, or signs up. If the email has an account with another password, such as in a shared database, it signs up
// with another one.
func (c client) signIn(ctx context.Context, a account) (account, error) {
	if a.TestKey != "" {
		err := c.post(ctx, "/auth/sign-in/email", map[string]string{"email": a.Email, "password": a.Password}, nil)
		if err == nil || !isClientError(err) {
			return a, err
		}
	}
	created := account{Email: a.Email, Password: a.Password}
	err := c.signUp(ctx, created)
	if errors.Is(err, errTaken) || isClientError(err) {
		created.Email = "demo-" + strings.ToLower(rand.Text()[:8]) + "@example.com"
		err = c.signUp(ctx, created)
	}
	return created, err
}

// errTaken means that another account has the address.
var errTaken = errors.New("the address has another account")

// signUp creates an account. If cores send mail, which is the default, it uses the link in the mail and signs in. An account with the
// same password is one that an attempt without an answer created.
func (c client) signUp(ctx context.Context, a account) error {
	credentials := map[string]string{"email": a.Email, "password": a.Password}
	err := c.post(ctx, "/auth/sign-up/email", map[string]string{"name": "Demo", "email": a.Email, "password": a.Password}, nil)
	if isClientError(err) && c.post(ctx, "/auth/sign-in/email", credentials, nil) == nil {
		return nil
	}
	site, _ := url.Parse(c.base)
	if err != nil || len(c.http.Jar.Cookies(site)) > 0 {
		return err
	}
	token, err := c.awaitToken(ctx, a.Email)
	if err != nil {
		return err
	}
	// A link that is refused may have been used by an attempt without an answer: signing in shows it.
	if err := c.get(ctx, "/auth/verify-email?"+url.Values{"token": {token}}.Encode()); err != nil && !isClientError(err) {
		return err
	}
	return c.post(ctx, "/auth/sign-in/email", credentials, nil)
}

// awaitToken returns the token of the link that is mailed to an address, or errTaken if the mail has none.
func (c client) awaitToken(ctx context.Context, email string) (string, error) {
	for {
		select {
		case m := <-c.mails:
			if !slices.Contains(m.To, email) {
				continue
			}
			link, err := url.Parse(m.Link())
			if err != nil || link.Query().Get("token") == "" {
				return "", errTaken
			}
			return link.Query().Get("token"), nil
		case <-ctx.Done():
			return "", fmt.Errorf("wait for the mail to %s: %w", email, context.Cause(ctx))
		}
	}
}

// ensureKey creates a key unless the given one is accepted.
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
		err = errors.New("the response has no key")
	}
	*key = created.Key
	return err
}

// accepts reports whether the gateway accepts key.
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

// statusError is a response with another status than 200.
type statusError struct {
	path   string // with the method
	status int
	body   string
}

func (e *statusError) Error() string {
	return fmt.Sprintf("%s: status %d: %s", e.path, e.status, e.body)
}

// isClientError reports whether err is a response with a 4xx status other than 429.
func isClientError(err error) bool {
	var response *statusError
	return errors.As(err, &response) && response.status >= 400 && response.status < 500 && response.status != http.StatusTooManyRequests
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
	return c.do(request, into)
}

func (c client) get(ctx context.Context, path string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		return err
	}
	return c.do(request, nil)
}

// do sends a request, and sends it again each second while the answer is 503 or 504, as on a machine that is too busy for the
// database or core to answer in time. After a 504 the request may have been carried out before, which costs a spare key at most.
func (c client) do(request *http.Request, into any) error {
	for {
		err := c.send(request, into)
		var answer *statusError
		if !errors.As(err, &answer) || (answer.status != http.StatusServiceUnavailable && answer.status != http.StatusGatewayTimeout) {
			return err
		}
		select {
		case <-request.Context().Done():
			return fmt.Errorf("%w: %w", context.Cause(request.Context()), err)
		case <-time.After(time.Second):
		}
		if request.GetBody != nil {
			if request.Body, err = request.GetBody(); err != nil {
				return err
			}
		}
	}
}

func (c client) send(request *http.Request, into any) error {
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return &statusError{request.Method + " " + request.URL.Path, response.StatusCode, strings.TrimSpace(string(content))}
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(content, into)
}
