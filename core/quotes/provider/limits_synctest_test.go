package provider_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/quotes/provider"
	"intents.internal/core/quotes/quote"
)

// fake is a provider without sockets, in the time of a bubble. It quotes, unless fails says otherwise.
type fake struct {
	requests atomic.Int32
	// fails answers in place of the provider; nil for a quote.
	fails atomic.Pointer[func(*http.Request) (*http.Response, error)]
}

func (f *fake) RoundTrip(r *http.Request) (*http.Response, error) {
	f.requests.Add(1)
	if fails := f.fails.Load(); fails != nil {
		return (*fails)(r)
	}
	return reply(http.StatusOK, answers(provider.OIF, honest())), nil
}

func (f *fake) fail(with func(*http.Request) (*http.Response, error)) { f.fails.Store(&with) }

func (f *fake) recover() { f.fails.Store(nil) }

func reply(code int, body string, header ...string) *http.Response {
	r := &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
	for n := 0; n < len(header); n += 2 {
		r.Header.Set(header[n], header[n+1])
	}
	return r
}

// hang answers when the call ends.
func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// hangFor hangs for the requests of one sender.
func hangFor(sender string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), strings.ToLower(sender[2:])) {
			return hang(r)
		}
		return reply(http.StatusOK, `{"quotes": []}`), nil
	}
}

func unavailable(*http.Request) (*http.Response, error) {
	return reply(http.StatusBadGateway, ""), nil
}

// newFakeSubject returns a provider with the default timeout.
func newFakeSubject(t *testing.T, f *fake) *subject {
	t.Helper()
	e := at(provider.OIF, "https://quotes.example")
	e.Timeout = 2 * time.Second
	return newSubject(t, e, f)
}

// code asks as an account and returns the code, empty for a quote.
func (s *subject) code(ctx context.Context, who uuid.UUID) quote.FailureCode {
	_, failure := s.Ask(ctx, who, route(quote.ExactInput), now)
	if failure == nil {
		return ""
	}
	return failure.Code
}

// codeOf asks for another sender, for whom hangFor does not hang and the fake has no quote.
func (s *subject) codeOf(ctx context.Context, who uuid.UUID, sender string) quote.FailureCode {
	r := route(quote.ExactInput)
	r.Source.Account.Address = sender
	_, failure := s.Ask(ctx, who, r, now)
	return failure.Code
}

// hanging starts calls of an account that hang, and returns once they do.
func (s *subject) hanging(t *testing.T, who uuid.UUID, calls int) (ended func() map[quote.FailureCode]int) {
	t.Helper()
	codes := make(chan quote.FailureCode, calls)
	for range calls {
		go func() { codes <- s.code(t.Context(), who) }()
	}
	synctest.Wait()
	return func() map[quote.FailureCode]int {
		counts := map[quote.FailureCode]int{}
		for range calls {
			counts[<-codes]++
		}
		return counts
	}
}

// An account that asks all the time of a provider that hangs has its share of the calls, and a stranger is served meanwhile and afterwards,
// when the account's circuit is open.
func TestProvider_Ask_OneAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.fail(hangFor(sender)) //nolint:bodyclose // the client closes it
		s := newFakeSubject(t, f)
		ended := s.hanging(t, account, 200)
		if got := f.requests.Load(); got != provider.MaxPerAccount {
			t.Errorf("%d calls of one account are in flight", got)
		}
		other := uuid.New()
		for range 100 {
			if code := s.codeOf(t.Context(), other, stranger); code != quote.NoQuote {
				t.Fatalf("a stranger is answered %s meanwhile", code)
			}
		}
		want := map[quote.FailureCode]int{quote.ProviderTimeout: provider.MaxPerAccount, quote.ProviderUnavailable: 200 - provider.MaxPerAccount}
		if diff := cmp.Diff(want, ended()); diff != "" {
			t.Error(diff)
		}
		before := f.requests.Load()
		if code := s.code(t.Context(), account); code != quote.ProviderUnavailable || f.requests.Load() != before {
			t.Errorf("the account is answered %s after its failures", code)
		}
		left, cancel := context.WithCancel(t.Context())
		cancel()
		s.code(left, other) // whose client ends a call, which is held against nobody
		if code := s.codeOf(t.Context(), other, stranger); code != quote.NoQuote {
			t.Errorf("a stranger is answered %s afterwards", code)
		}
	})
}

// The calls of all accounts together are bounded too, and none waits for another.
func TestProvider_Ask_ManyAccounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.fail(hang)
		s := newFakeSubject(t, f)
		var ends []func() map[quote.FailureCode]int
		for range 5 {
			ends = append(ends, s.hanging(t, uuid.New(), provider.MaxPerAccount))
		}
		if got := f.requests.Load(); got != provider.MaxInFlight {
			t.Errorf("%d calls are in flight", got)
		}
		began := time.Now()
		if got := ends[4](); got[quote.ProviderUnavailable] != provider.MaxPerAccount || time.Since(began) > 0 {
			t.Errorf("over the bound: %v after %s", got, time.Since(began))
		}
		for _, ended := range ends[:4] {
			if got := ended(); got[quote.ProviderTimeout] != provider.MaxPerAccount || time.Since(began) != 2*time.Second {
				t.Errorf("%v after %s", got, time.Since(began))
			}
		}
		f.recover()
		time.Sleep(provider.OpenFor + time.Millisecond)
		if code := s.code(t.Context(), account); code != "" {
			t.Errorf("afterwards: %s", code)
		}
	})
}

// A provider that fails is not asked for a while; then one call tries it.
func TestProvider_Ask_Breaker(t *testing.T) {
	t.Parallel()
	for name, failing := range map[string]func(*http.Request) (*http.Response, error){"timeouts": hang, "502": unavailable} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fake{}
				s := newFakeSubject(t, f)
				left, cancel := context.WithCancel(t.Context())
				cancel()
				accounts := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
				for n := range provider.TripAfter {
					f.fail(failing)
					s.code(t.Context(), accounts[n%3])
					f.fail(hang)
					s.code(left, account) // what a client ends is neither a failure nor a success
				}
				f.fail(failing)
				asked := func() bool {
					before := f.requests.Load()
					code := s.code(t.Context(), account)
					if now := f.requests.Load(); now == before && code != quote.ProviderUnavailable {
						t.Errorf("not asked, but %q", code)
					}
					return f.requests.Load() > before
				}
				if f.requests.Load() < provider.TripAfter || asked() {
					t.Error("the breaker is closed after failures of three accounts")
				}
				time.Sleep(provider.OpenFor + time.Millisecond)
				if !asked() || asked() {
					t.Error("a failed probe does not open the breaker again")
				}
				f.recover()
				time.Sleep(provider.OpenFor + time.Millisecond)
				for range 10 {
					if code := s.code(t.Context(), account); code != "" {
						t.Errorf("after the provider has recovered: %s", code)
					}
				}
				f.fail(hangFor(sender)) //nolint:bodyclose // the client closes it
				for range provider.TripAfter {
					s.code(t.Context(), account)
				}
				if code := s.codeOf(t.Context(), accounts[0], stranger); code != quote.NoQuote {
					t.Errorf("an account that failed before the recovery is answered %s", code)
				}
			})
		})
	}
}

// Answers of any other kind, and calls that clients end, do not open the breaker.
func TestProvider_Ask_BreakerStaysClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		s := newFakeSubject(t, f)
		left, cancel := context.WithCancel(t.Context())
		cancel()
		for name, answer := range map[string]func(*http.Request) (*http.Response, error){
			"refusal":   func(*http.Request) (*http.Response, error) { return reply(http.StatusBadRequest, ""), nil },
			"no JSON":   func(*http.Request) (*http.Response, error) { return reply(http.StatusOK, ""), nil },
			"no quote":  func(*http.Request) (*http.Response, error) { return reply(http.StatusOK, `{"quotes": []}`), nil },
			"redirect":  func(*http.Request) (*http.Response, error) { return reply(http.StatusFound, ""), nil },
			"abandoned": nil,
		} {
			ctx := t.Context()
			if answer == nil {
				ctx, answer = left, hang
			}
			f.fail(answer)
			for range 2 * provider.TripAfter {
				s.code(ctx, account)
			}
			f.recover()
			if code := s.code(t.Context(), account); code != "" {
				t.Errorf("%s: %s", name, code)
			}
		}
		if failures := s.counted(t, "intents_core_quote_failures_total"); failures[string(quote.ProviderTimeout)] > 0 {
			t.Errorf("calls that clients ended count as failures: %v", failures)
		}
		if requests := s.counted(t, "intents_core_quote_requests_total"); requests[""] != 4*2*provider.TripAfter+5 {
			t.Errorf("calls that clients ended count as requests, of which they are no failures: %v", requests)
		}
	})
}

// What a provider says about a question moves the breaker in neither direction: the routes that some accounts ask for close it to nobody, and
// their answers do not hide an outage.
func TestProvider_Ask_BreakerAboutQuestion(t *testing.T) {
	t.Parallel()
	refuse := func(*http.Request) (*http.Response, error) {
		return reply(http.StatusInternalServerError, `{"error": "INTERNAL_ERROR", "message": "Token not supported"}`), nil
	}
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		s := newFakeSubject(t, f)
		f.fail(refuse)
		for range 3 * provider.TripAfter {
			if code := s.code(t.Context(), uuid.New()); code != quote.NoQuote {
				t.Fatalf("an unknown token: %s", code)
			}
		}
		f.recover()
		if code := s.code(t.Context(), account); code != "" {
			t.Errorf("a served route afterwards: %s", code)
		}
		accounts := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
		for n := range provider.TripAfter {
			f.fail(unavailable)
			s.code(t.Context(), accounts[n%3])
			f.fail(refuse)
			s.code(t.Context(), accounts[n%3])
		}
		before := f.requests.Load()
		if code := s.code(t.Context(), account); code != quote.ProviderUnavailable || f.requests.Load() != before {
			t.Errorf("after failures with refusals between them: %q", code)
		}
		time.Sleep(provider.OpenFor + time.Millisecond)
		s.code(t.Context(), account) // a probe that is refused
		f.recover()
		for range 3 {
			if code := s.code(t.Context(), account); code != "" {
				t.Errorf("after the provider has recovered: %s", code)
			}
		}
	})
}

// After 429 the provider is not asked until Retry-After, a minute at most.
func TestProvider_Ask_RateLimited(t *testing.T) {
	t.Parallel()
	for header, pause := range map[string]time.Duration{"": time.Second, "0": time.Second, "20": 20 * time.Second, "86400": time.Minute, "soon": time.Second} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{}
			s := newFakeSubject(t, f)
			f.fail(func(*http.Request) (*http.Response, error) {
				return reply(http.StatusTooManyRequests, "", "Retry-After", header), nil
			})
			if _, failure := s.Ask(t.Context(), account, route(quote.ExactInput), now); failure.Code != quote.ProviderRateLimited || failure.RetryAfter != pause {
				t.Errorf("%q: %v, again after %s", header, failure, failure.RetryAfter)
			}
			f.recover()
			time.Sleep(pause - time.Millisecond)
			_, failure := s.Ask(t.Context(), uuid.New(), route(quote.ExactInput), now)
			if failure == nil || failure.Code != quote.ProviderRateLimited || failure.RetryAfter != time.Millisecond || f.requests.Load() != 1 {
				t.Errorf("%q: asked again before %s: %v", header, pause, failure)
			}
			time.Sleep(time.Millisecond)
			if code := s.code(t.Context(), account); code != "" {
				t.Errorf("%q: after %s: %s", header, pause, code)
			}
		})
	}
}

// An account that asks all the time makes its requests of the minute and no more, so that it alone does not provoke the 429 of a provider, and a
// stranger is answered all the time. What the account is refused says nothing of the provider: it is neither counted nor logged.
func TestProvider_Ask_AccountRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		e := at(provider.OIF, "https://quotes.example")
		e.Timeout, e.AccountRequests = 2*time.Second, 60
		s := newSubject(t, e, f)
		const grants = 100 // in the minute
		f.fail(func(*http.Request) (*http.Response, error) {
			if f.requests.Load() > grants {
				return reply(http.StatusTooManyRequests, "", "Retry-After", "60"), nil
			}
			return reply(http.StatusOK, answers(provider.OIF, honest())), nil
		})
		other, answered := uuid.New(), 0
		for second := range 60 {
			for range 50 {
				_, failure := s.Ask(t.Context(), account, route(quote.ExactInput), now)
				switch {
				case failure == nil:
					answered++
				case failure.Code != quote.ProviderRateLimited || failure.RetryAfter <= 0 || failure.RetryAfter > time.Second:
					t.Fatalf("second %d: %v, again after %s", second, failure, failure.RetryAfter)
				}
			}
			if second%3 == 0 {
				if code := s.code(t.Context(), other); code != "" {
					t.Fatalf("second %d: a stranger is answered %s", second, code)
				}
			}
			time.Sleep(time.Second)
		}
		if answered != 10+59 {
			t.Errorf("the account is answered %d times in the minute", answered)
		}
		if requests := s.counted(t, "intents_core_quote_requests_total"); requests[""] != float64(answered+20) {
			t.Errorf("requests: %v", requests)
		}
		if failures := s.counted(t, "intents_core_quote_failures_total"); len(failures) > 0 || s.log.Len() > 0 {
			t.Errorf("failures: %v, %s", failures, s.log.String())
		}
	})
}

// A provider that fails is logged once a minute.
func TestProvider_Ask_Log(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		s := newFakeSubject(t, f)
		f.fail(unavailable)
		for range 90 {
			s.code(t.Context(), account)
			time.Sleep(time.Second)
		}
		if lines := strings.Split(strings.TrimSpace(s.log.String()), "\n"); len(lines) != 2 || !strings.Contains(lines[1], "suppressed=59") {
			t.Errorf("%q", lines)
		}
	})
}
