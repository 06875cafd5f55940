package rpc

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"intents.internal/core/outbound"
	"intents.internal/pkg/transport"
)

const (
	defaultTimeout = 10 * time.Second
	// maxBatch is the most calls of one request.
	maxBatch = 100
	// maxAnswer bounds the bytes of a response after decompression.
	maxAnswer = 32 << 20
	// maxSlowAnswer is how many bytes of logs may arrive until the time of a request is over and the provider still counts as silent. More of
	// them are too many for its connection.
	maxSlowAnswer = 1 << 20
	// minSecret is the minimum length of a part of a URL that is redacted: "v3" and "eth" are not secrets.
	minSecret = 4
)

// Provider is one node of a chain. Its URL is in no error, log or metric. It is safe for concurrent use.
type Provider struct {
	chain    string
	number   uint64
	host     string
	label    string
	address  string
	userinfo *url.Userinfo
	redact   *strings.Replacer
	client   *http.Client
	health   *health
	verified verification
	lastID   atomic.Uint64
	metrics  *metrics
}

// Busy reports whether the provider's calls of this second are more than half used. Optional calls leave the rest to required
// ones.
func (p *Provider) Busy() bool { return p.health.busy() }

// Patience is how long an answer is waited for where another provider can give it: a quarter of the time that a request has.
func (p *Provider) Patience() time.Duration { return p.client.Timeout / 4 }

// CallsWithin is how many calls the provider grants in a time, at its present rate.
func (p *Provider) CallsWithin(d time.Duration) int {
	return int(float64(p.health.limiter.Limit()) * d.Seconds())
}

func newProvider(endpoint Endpoint) (*Provider, error) {
	address, err := parseURL(endpoint.URL.Reveal())
	if err != nil {
		return nil, err
	}
	p := &Provider{
		host: hostOf(address), label: hostOf(address), userinfo: address.User, redact: redactor(address, endpoint.URL.Reveal()), health: newHealth(endpoint),
	}
	address.User = nil
	p.address = address.String()
	return p, nil
}

// redactor removes the secret parts of a URL from texts: a node or a proxy may repeat them.
func redactor(address *url.URL, text string) *strings.Replacer {
	secrets := []string{text, address.Path, address.EscapedPath(), address.RawQuery}
	secrets = append(secrets, strings.Split(address.Path, "/")...)
	secrets = append(secrets, strings.Split(address.EscapedPath(), "/")...)
	for _, values := range address.Query() {
		secrets = append(secrets, values...)
	}
	if user := address.User; user != nil {
		password, _ := user.Password()
		secrets = append(secrets, user.String(), user.Username(), password, base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	secrets = slices.DeleteFunc(secrets, func(s string) bool { return len(s) < minSecret })
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, s := range secrets {
		pairs = append(pairs, s, "[redacted]")
	}
	return strings.NewReplacer(pairs...)
}

// Host is the only part of the URL that may be shown.
func (p *Provider) Host() string { return p.host }

// Format prints the host for every verb.
func (p *Provider) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, p.host) }

// LogRange is how many blocks to ask for in one eth_getLogs: half after ErrRange, a tenth more after success.
func (p *Provider) LogRange() uint64 { return p.health.logRange() }

// Do sends the calls in order, up to 100 in a request and no more than the node takes. Afterwards each call has its result or its
// error. The error that Do returns is of the complete request, and of every call without a result.
func (p *Provider) Do(ctx context.Context, requests ...Request) error {
	calls := make([]*call, len(requests))
	for i, r := range requests {
		calls[i] = r.pending()
	}
	err := p.verifyWhenDue(ctx)
	for len(calls) > 0 {
		chunk := calls[:min(len(calls), p.health.batchSize())]
		calls = calls[len(chunk):]
		if err == nil {
			err = p.send(ctx, chunk)
		}
		for _, c := range chunk {
			if err != nil {
				c.err = err
			}
		}
	}
	return err
}

// request makes one request: it waits for its turn, sends it and adapts the limits to the outcome.
func (p *Provider) request(ctx context.Context, calls []*call) error {
	if err := p.health.wait(ctx, len(calls)); err != nil {
		return fmt.Errorf("%s: %w", p.host, err)
	}
	sent := time.Now()
	err := p.exchange(ctx, calls)
	p.metrics.seconds.WithLabelValues(p.chain, p.label).Observe(time.Since(sent).Seconds())
	p.learn(sent, calls, err)
	for _, c := range calls {
		if c.err != nil {
			c.err = fmt.Errorf("%s: %s: %w", p.host, c.method, c.err)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", p.host, err)
	}
	return nil
}

// learn counts the calls and adapts the node's limits.
func (p *Provider) learn(sent time.Time, calls []*call, err error) {
	var limited, malformed bool
	unexplained := true
	for _, c := range calls {
		e := err
		if e == nil {
			e = c.err
		}
		p.metrics.requests.WithLabelValues(p.chain, p.label, c.method).Inc()
		if e != nil {
			p.metrics.errors.WithLabelValues(p.chain, p.label, c.method, reason(e)).Inc()
		}
		limited = limited || errors.Is(e, ErrRate)
		malformed = malformed || errors.Is(e, ErrMalformed) && (err != nil || !c.chosenByUsers())
		unexplained = unexplained && c.unexplained(e)
		switch {
		case c.logBlocks == 0:
		case e == nil:
			p.health.grow(c.logBlocks)
		case errors.Is(e, ErrRange), errors.Is(e, context.DeadlineExceeded):
			p.health.shrink(c.logBlocks)
		}
	}
	switch {
	case err == nil:
		p.health.growBatch(len(calls))
	case errors.Is(err, context.DeadlineExceeded) && !allChosenByUsers(calls):
		p.health.shrinkBatch(len(calls))
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && allChosenByUsers(calls):
	case limited:
		var pause time.Duration
		if f, ok := errors.AsType[*failure](err); ok {
			pause = f.retryAfter
		}
		p.health.limited(sent, pause)
	case malformed || unexplained || errors.Is(err, ErrTransport):
		p.health.fail(errors.Is(err, ErrTransport), time.Since(sent))
		p.verified.expire()
	default:
		p.health.succeed()
	}
}

// exchange sends a request and gives each call its result or its error.
func (p *Provider) exchange(ctx context.Context, calls []*call) error {
	body, err := p.encode(calls)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.address, bytes.NewReader(body))
	if err != nil {
		return p.noAnswer(ctx, err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "intents-core")
	if p.userinfo != nil {
		password, _ := p.userinfo.Password()
		request.SetBasicAuth(p.userinfo.Username(), password)
	}
	response, err := p.client.Do(request)
	if err != nil {
		return p.noAnswer(ctx, err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusTooManyRequests {
		return &failure{kind: ErrRate, text: "HTTP 429", retryAfter: outbound.RetryAfter(response.Header, time.Now())}
	}
	answer := &trackedReader{Reader: response.Body}
	err = p.decode(answer, calls)
	switch {
	case errors.Is(answer.err, transport.ErrBodyTooLarge):
		return &failure{kind: tooLarge(calls), text: "the answer is over 32 MiB"}
	case hasLogs(calls) && answer.bytes > maxSlowAnswer && errors.Is(answer.err, context.DeadlineExceeded) && ctx.Err() == nil:
		return &failure{kind: tooLarge(calls), text: "the logs do not arrive within the time of a request"}
	case answer.err != nil:
		return p.noAnswer(ctx, answer.err)
	}
	if response.StatusCode != http.StatusOK && !isNodeError(err, calls) {
		if len(calls) > 1 && rejectsBatch(response.StatusCode) {
			return &failure{kind: errBatch, text: fmt.Sprintf("HTTP %d", response.StatusCode)}
		}
		return &failure{kind: ErrTransport, text: strings.TrimSpace(fmt.Sprintf("HTTP %d %s", response.StatusCode, http.StatusText(response.StatusCode)))}
	}
	return err
}

// tooLarge is the kind of a response that is too large: where it has the logs of several blocks, that of their range.
func tooLarge(calls []*call) error {
	if slices.ContainsFunc(calls, func(c *call) bool { return c.logBlocks > 1 }) {
		return ErrRange
	}
	return ErrTooLarge
}

func hasLogs(calls []*call) bool {
	return slices.ContainsFunc(calls, func(c *call) bool { return c.logBlocks > 0 })
}

// trackedReader keeps the number of bytes and the error of reading, to tell it from that of what was read.
type trackedReader struct {
	io.Reader

	bytes int
	err   error
}

func (r *trackedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.bytes += n
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}

// rejectsBatch reports whether an HTTP status without a JSON-RPC error may mean that the request has too many calls.
func rejectsBatch(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge || status == http.StatusUnprocessableEntity
}

// isNodeError reports whether the response contains only JSON-RPC errors, which some providers send with an HTTP error status.
func isNodeError(err error, calls []*call) bool {
	_, ok := errors.AsType[*Error](err)
	return ok || (err == nil && !slices.ContainsFunc(calls, func(c *call) bool { return c.err == nil }))
}

// noAnswer is an error of net/http without the URL.
func (p *Provider) noAnswer(ctx context.Context, err error) error {
	if withURL, ok := errors.AsType[*url.Error](err); ok {
		err = withURL.Err
	}
	switch {
	case ctx.Err() != nil:
		err = ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		err = context.DeadlineExceeded // without the words of net/http about its client's timeout
	}
	return &failure{kind: ErrTransport, text: p.clean(err.Error()), cause: err}
}

// clean makes a node's text safe to show: without parts of the URL, on one line and short.
func (p *Provider) clean(text string) string {
	text = text[:min(len(text), 64<<10)]
	text = p.redact.Replace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text))
	return strings.ToValidUTF8(text[:min(len(text), maxMessage)], "")
}

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
	}
	return p.identify(id.value)
}

// identify records the chain id that the node serves, and returns ErrWrongChain if it is another chain's.
func (p *Provider) identify(id uint64) error {
	if id != p.number {
		p.verified.set(verifyWrongEvery, true, fmt.Sprintf("the node serves eip155:%d, not %s", id, p.chain))
		return fmt.Errorf("%s: %w: %s", p.host, ErrWrongChain, p.Problem())
	}
	p.verified.set(verifyEvery, false, "")
	return nil
}
