package provider_test

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/quotes/provider"
	"intents.internal/core/quotes/provider/providertest"
	"intents.internal/core/quotes/quote"
	"intents.internal/pkg/telemetry"
)

// outcome is what is taken of an answer: the amounts that were asked for, or the code.
type outcome struct {
	Offers  []string
	Code    quote.FailureCode
	Dropped map[string]float64
}

func (s *subject) outcome(t *testing.T, r provider.Request) (o outcome) {
	t.Helper()
	offers, failure := s.Ask(t.Context(), account, r, now)
	for _, offer := range offers {
		o.Offers = append(o.Offers, offer.Amount.String())
	}
	if failure != nil {
		o.Code = failure.Code
	}
	if dropped := s.counted(t, "intents_core_quote_dropped_total"); len(dropped) > 0 {
		o.Dropped = dropped
	}
	return o
}

func dropped(reason string) map[string]float64 { return map[string]float64{reason: 1} }

// one quote differs from an honest one in one member.
func TestProvider_Ask_Quote(t *testing.T) {
	t.Parallel()
	taken := outcome{Offers: []string{"999000"}}
	invalid := func(reason string) outcome { return outcome{Code: quote.ProviderInvalid, Dropped: dropped(reason)} }
	unsuitable := func(reason string) outcome { return outcome{Code: quote.NoQuote, Dropped: dropped(reason)} }
	output := func(amount string) func(*answer) { return func(a *answer) { a.out.amount = amount } }
	until := func(at time.Time) func(*answer) {
		return func(a *answer) { a.validUntil = fmt.Sprint(at.Unix()) }
	}
	const maximum = "115792089237316195423570985008687907853269984665640564039457584007913129639935"
	for name, c := range map[string]struct {
		change func(*answer)
		want   outcome
	}{
		"honest":                 {func(*answer) {}, taken},
		"addresses in lower":     {func(a *answer) { a.in.account, a.out.token = strings.ToLower(sender), strings.ToLower(baseUSDC) }, taken},
		"zero output":            {output(`"0"`), invalid("amount")},
		"largest output":         {output(`"` + maximum + `"`), outcome{Offers: []string{maximum}}},
		"output of 2^256":        {output(`"` + maximum[:77] + `6"`), invalid("malformed")},
		"output of 78 digits":    {output(`"` + strings.Repeat("9", 78) + `"`), invalid("malformed")},
		"output of 79 digits":    {output(`"` + strings.Repeat("1", 79) + `"`), invalid("malformed")},
		"a million digits":       {output(`"` + strings.Repeat("9", 900_000) + `"`), invalid("malformed")},
		"JSON number":            {output("999000"), invalid("malformed")},
		"JSON float":             {output("9.99e5"), invalid("malformed")},
		"decimals":               {output(`"999000.5"`), invalid("malformed")},
		"exponent":               {output(`"1e6"`), invalid("malformed")},
		"negative":               {output(`"-999000"`), invalid("malformed")},
		"sign":                   {output(`"+999000"`), invalid("malformed")},
		"leading zero":           {output(`"0999000"`), invalid("malformed")},
		"hexadecimal":            {output(`"0xf3e58"`), invalid("malformed")},
		"other digits":           {output(`"٩٩٩"`), invalid("malformed")},
		"spaces":                 {output(`" 999000"`), invalid("malformed")},
		"empty amount":           {output(`""`), invalid("malformed")},
		"no amount":              {output("null"), invalid("malformed")},
		"input raised":           {func(a *answer) { a.in.amount = `"1000001"` }, invalid("amount")},
		"input lowered":          {func(a *answer) { a.in.amount = `"999999"` }, invalid("amount")},
		"other input token":      {func(a *answer) { a.in.token = stranger }, invalid("other_route")},
		"native input":           {func(a *answer) { a.in.token = native }, invalid("other_route")},
		"other output token":     {func(a *answer) { a.out.token = usdc }, invalid("other_route")},
		"other sender":           {func(a *answer) { a.in.account = stranger }, invalid("other_route")},
		"other recipient":        {func(a *answer) { a.out.account = stranger }, invalid("other_route")},
		"other origin":           {func(a *answer) { a.in.chain = 10 }, invalid("other_route")},
		"other destination":      {func(a *answer) { a.out.chain = 1 }, invalid("other_route")},
		"partial fill":           {func(a *answer) { a.partialFill = "true" }, invalid("partial_fill")},
		"partial fill not said":  {func(a *answer) { a.partialFill = "null" }, taken},
		"partial fill as text":   {func(a *answer) { a.partialFill = `"true"` }, invalid("malformed")},
		"expired":                {until(now.Add(-time.Hour)), unsuitable("expired")},
		"ends in 14 s":           {until(now.Add(14 * time.Second)), unsuitable("expired")},
		"ends in 15 s":           {until(now.Add(15 * time.Second)), taken},
		"ends in an hour":        {until(now.Add(time.Hour)), taken},
		"ends after an hour":     {until(now.Add(time.Hour + time.Second)), unsuitable("far_end")},
		"ends in a year":         {until(now.AddDate(1, 0, 0)), unsuitable("far_end")},
		"ends in milliseconds":   {func(a *answer) { a.validUntil = fmt.Sprint(now.Add(time.Minute).UnixMilli()) }, unsuitable("far_end")},
		"ends before 1970":       {func(a *answer) { a.validUntil = "-9223372036854775808" }, unsuitable("expired")},
		"ends never":             {func(a *answer) { a.validUntil = "9223372036854775807" }, unsuitable("far_end")},
		"ends after int64":       {func(a *answer) { a.validUntil = "9223372036854775808" }, invalid("malformed")},
		"no end":                 {func(a *answer) { a.validUntil = "null" }, unsuitable("expired")},
		"end as text":            {func(a *answer) { a.validUntil = `"tomorrow"` }, invalid("malformed")},
		"end with a fraction":    {func(a *answer) { a.validUntil = "1795608060.5" }, invalid("malformed")},
		"negative estimate":      {func(a *answer) { a.eta = "-1" }, taken},
		"estimate without bound": {func(a *answer) { a.eta = "1e300" }, taken},
		"no estimate":            {func(a *answer) { a.eta = "null" }, taken},
	} {
		for _, kind := range []provider.Kind{provider.LIFI, provider.OIF} {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				t.Parallel()
				s := newSubject(t, at(kind, serve(t, respond(answers(kind, honest(c.change))))), nil)
				if diff := cmp.Diff(c.want, s.outcome(t, route(quote.ExactInput))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

// What is taken of a quote is an amount and two times, within their bounds.
func TestProvider_Ask_Offer(t *testing.T) {
	t.Parallel()
	hour := func(a *answer) { a.validUntil, a.eta = fmt.Sprint(now.Add(time.Hour).Unix()), "1e300" }
	for name, c := range map[string]struct {
		change   func(*answer)
		until    time.Time
		duration time.Duration
	}{
		"a minute": {func(*answer) {}, now.Add(time.Minute), 30 * time.Second}, "an hour": {hour, lastUse, 7 * 24 * time.Hour},
	} {
		s := newSubject(t, at(provider.OIF, serve(t, respond(answers(provider.OIF, honest(c.change))))), nil)
		offers, failure := s.Ask(t.Context(), account, route(quote.ExactInput), now)
		if failure != nil || !offers[0].ValidUntil.Equal(c.until) || offers[0].Duration != c.duration {
			t.Errorf("%s: %+v, %v", name, offers, failure)
		}
	}
}

// An offer holds until its order would have less than its least lifetime, and long enough for the order to be opened.
func TestProvider_Ask_MinValidity(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*provider.Request)
		taken  bool
	}{
		"two blocks":         {func(r *provider.Request) { r.MinValidity = 39 * time.Second }, true},
		"two slow blocks":    {func(r *provider.Request) { r.MinValidity = 61 * time.Second }, false},
		"time for the order": {func(r *provider.Request) { r.LastUse = now.Add(15 * time.Second) }, true},
		"no time for it":     {func(r *provider.Request) { r.LastUse = now.Add(14 * time.Second) }, false},
	} {
		r := route(quote.ExactInput)
		c.change(&r)
		want := outcome{Code: quote.NoQuote, Dropped: dropped("expired")}
		if c.taken {
			want = outcome{Offers: []string{"999000"}}
		}
		got := newSubject(t, at(provider.OIF, serve(t, respond(answers(provider.OIF, honest())))), nil).outcome(t, r)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Several quotes of one answer are compared with each other.
func TestProvider_Ask_Quotes(t *testing.T) {
	t.Parallel()
	many := func(amount func(n int) int, id func(n int) string, kind quote.Kind) (quotes []answer) {
		for n := range 1000 {
			quotes = append(quotes, honest(func(a *answer) {
				text := fmt.Sprintf(`"%d"`, amount(n))
				a.id = id(n)
				if kind == quote.ExactOutput {
					a.in.amount = text
				} else {
					a.out.amount = text
				}
			}))
		}
		return quotes
	}
	numbered := func(n int) string { return fmt.Sprintf(`"q-%d"`, n) }
	counting := func(from, step int) (amounts []string) {
		for n := range 20 {
			amounts = append(amounts, fmt.Sprint(from+n*step))
		}
		return amounts
	}
	zero := func(a *answer) { a.out.amount = `"0"` }
	late := func(a *answer) { a.validUntil = "1" }
	for name, c := range map[string]struct {
		kind   quote.Kind
		quotes []answer
		want   outcome
	}{
		"none": {quote.ExactInput, nil, outcome{Code: quote.NoQuote}},
		"a thousand": {
			quote.ExactInput, many(func(n int) int { return 5000 + n*7%1000 }, numbered, quote.ExactInput),
			outcome{Offers: counting(5999, -1), Dropped: map[string]float64{"too_many": 980}},
		},
		"a thousand of exact output": {
			quote.ExactOutput, many(func(n int) int { return 5000 + n*7%1000 }, numbered, quote.ExactOutput),
			outcome{Offers: counting(5000, 1), Dropped: map[string]float64{"too_many": 980}},
		},
		"a thousand of one id": {
			quote.ExactInput, many(func(n int) int { return 5000 + n }, func(int) string { return `"q"` }, quote.ExactInput),
			outcome{Offers: []string{"5999"}, Dropped: map[string]float64{"duplicate": 999}},
		},
		"a thousand of one id and exact output": {
			quote.ExactOutput, many(func(n int) int { return 5999 - n }, func(int) string { return `"q"` }, quote.ExactOutput),
			outcome{Offers: []string{"5000"}, Dropped: map[string]float64{"duplicate": 999}},
		},
		"a thousand alike": {
			quote.ExactInput, many(func(int) int { return 5000 }, numbered, quote.ExactInput),
			outcome{Offers: []string{"5000"}, Dropped: map[string]float64{"duplicate": 999}},
		},
		"without ids": {
			quote.ExactInput,
			[]answer{honest(func(a *answer) { a.id = "null" }), honest(func(a *answer) { a.id, a.out.amount = "null", `"999001"` })},
			outcome{Offers: []string{"999001", "999000"}},
		},
		"one good": {
			quote.ExactInput,
			[]answer{honest(zero), honest(late), honest()},
			outcome{Offers: []string{"999000"}, Dropped: map[string]float64{"amount": 1, "expired": 1}},
		},
		"invalid and expired":            {quote.ExactInput, []answer{honest(zero), honest(late)}, outcome{Code: quote.NoQuote, Dropped: map[string]float64{"amount": 1, "expired": 1}}},
		"invalid":                        {quote.ExactInput, []answer{honest(zero), honest(zero)}, outcome{Code: quote.ProviderInvalid, Dropped: map[string]float64{"amount": 2}}},
		"exact output":                   {quote.ExactOutput, []answer{honest()}, outcome{Offers: []string{"1000000"}}},
		"exact output for nothing":       {quote.ExactOutput, []answer{honest(func(a *answer) { a.in.amount = `"0"` })}, outcome{Code: quote.ProviderInvalid, Dropped: dropped("amount")}},
		"exact output as exact input":    {quote.ExactOutput, []answer{honest(func(a *answer) { a.out.amount = `"998000"` })}, outcome{Code: quote.ProviderInvalid, Dropped: dropped("amount")}},
		"exact output with more than it": {quote.ExactOutput, []answer{honest(func(a *answer) { a.out.amount = `"999001"` })}, outcome{Code: quote.ProviderInvalid, Dropped: dropped("amount")}},
	} {
		for _, kind := range []provider.Kind{provider.LIFI, provider.OIF} {
			t.Run(string(kind)+" "+name, func(t *testing.T) {
				t.Parallel()
				s := newSubject(t, at(kind, serve(t, respond(answers(kind, c.quotes...)))), nil)
				if diff := cmp.Diff(c.want, s.outcome(t, route(c.kind))); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		}
	}
}

// A quote that is malformed in itself leaves the others of the answer; one that names no single side is malformed.
func TestProvider_Ask_MalformedQuotes(t *testing.T) {
	t.Parallel()
	for _, kind := range []provider.Kind{provider.LIFI, provider.OIF} {
		good := honest().json(kind)
		for _, bad := range []string{
			"null", "7", `"quote"`, "[]", "{}", `{"preview": null}`, `{"preview": {"inputs": {}, "outputs": []}}`,
			strings.Replace(good, `"inputs": [`, `"inputs": [{},`, 1), strings.Replace(good, `"outputs": [`, `"outputs": [{},`, 1),
		} {
			s := newSubject(t, at(kind, serve(t, respond(`{"quotes": [`+bad+","+good+`]}`))), nil)
			if diff := cmp.Diff(outcome{Offers: []string{"999000"}, Dropped: dropped("malformed")}, s.outcome(t, route(quote.ExactInput))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", bad, diff)
			}
		}
	}
}

// Addresses of the framework that are none leave no quote.
func TestProvider_Ask_InteroperableAddresses(t *testing.T) {
	t.Parallel()
	good := answers(provider.OIF, honest())
	for name, replace := range map[string][2]string{
		"plain": {providertest.Interoperable(1, sender), sender}, "two chains": {providertest.Interoperable(1, usdc), providertest.Interoperable(10, usdc)},
		"empty": {providertest.Interoperable(8453, recipient), ""}, "solana": {"0x00010000", "0x00010002"},
	} {
		s := newSubject(t, at(provider.OIF, serve(t, respond(strings.ReplaceAll(good, replace[0], replace[1])))), nil)
		if diff := cmp.Diff(outcome{Code: quote.ProviderInvalid, Dropped: dropped("malformed")}, s.outcome(t, route(quote.ExactInput))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// The native asset is the zero address towards providers, and ERC-7528's address is understood too.
func TestProvider_Ask_Native(t *testing.T) {
	t.Parallel()
	r := route(quote.ExactInput)
	r.Source.Token.Address = native
	for token, want := range map[string]int{native: 1, "0x0000000000000000000000000000000000000000": 1, usdc: 0} {
		body := answers(provider.LIFI, honest(func(a *answer) { a.in.token = token }))
		if got := newSubject(t, at(provider.LIFI, serve(t, respond(body))), nil).outcome(t, r); len(got.Offers) != want {
			t.Errorf("%s: %+v", token, got)
		}
	}
}

// status answers with a status, a header and a body.
func status(code int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for n := 0; n < len(header); n += 2 {
			w.Header().Set(header[n], header[n+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// endless answers as long as it is read.
func endless(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		for more, err := strings.Repeat(text, 10_000), error(nil); err == nil; {
			_, err = io.WriteString(w, more)
		}
	}
}

// slow sends the beginning of an answer and then nothing.
func slow(begin string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, begin)
		_ = http.NewResponseController(w).Flush()
		silence(w, r)
	}
}

// slow500 fails, and sends only the beginning of why.
func slow500(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(http.StatusInternalServerError)
	slow(`{"error": "`)(w, r)
}

// silence answers nothing until the client goes.
func silence(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // net/http sees the end of the connection after the body only
	<-r.Context().Done()
}

// hijack answers with bytes that need not be HTTP.
func hijack(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, text)
		_ = conn.Close()
	}
}

// Answers that are no list of quotes. Each repeats the request's secret header, which is in no error and no log, and neither is the URL's path.
func TestProvider_Ask_Answer(t *testing.T) {
	t.Parallel()
	const secret = "s3cret"
	for name, c := range map[string]struct {
		kind   provider.Kind
		handle http.HandlerFunc
		want   quote.FailureCode
		cause  string
	}{
		"no JSON":              {provider.OIF, respond("<html>" + secret), quote.ProviderInvalid, "no JSON object"},
		"empty body":           {provider.OIF, respond(""), quote.ProviderInvalid, "no JSON object"},
		"null":                 {provider.OIF, respond("null"), quote.ProviderInvalid, "no JSON object"},
		"no quotes":            {provider.LIFI, respond(`{"` + secret + `": []}`), quote.ProviderInvalid, "no JSON object"},
		"quotes of null":       {provider.LIFI, respond(`{"quotes": null}`), quote.ProviderInvalid, "no JSON object"},
		"quotes of an object":  {provider.LIFI, respond(`{"quotes": {"` + secret + `": 1}}`), quote.ProviderInvalid, "no JSON object"},
		"a name twice":         {provider.LIFI, respond(`{"quotes": [], "quotes": []}`), quote.ProviderInvalid, "no JSON object"},
		"half a body":          {provider.LIFI, respond(`{"quotes": [` + honest().json(provider.LIFI)), quote.ProviderInvalid, "no JSON object"},
		"two bodies":           {provider.LIFI, respond(answers(provider.LIFI, honest()) + `{}`), quote.ProviderInvalid, "no JSON object"},
		"deep nesting":         {provider.LIFI, respond(`{"quotes": ` + strings.Repeat("[", 200_000)), quote.ProviderInvalid, "no JSON object"},
		"endless body":         {provider.OIF, endless(200, `{"quotes": ["`+secret+`"`), quote.ProviderInvalid, "over 1048576 bytes"},
		"endless refusal":      {provider.OIF, endless(400, secret), quote.ProviderInvalid, "over 1048576 bytes"},
		"silence":              {provider.OIF, silence, quote.ProviderTimeout, "deadline exceeded"},
		"slow body":            {provider.OIF, slow(`{"quotes": [`), quote.ProviderTimeout, "deadline exceeded"},
		"redirect":             {provider.OIF, status(307, "", "Location", "/"+secret), quote.ProviderInvalid, "HTTP 307"},
		"not modified":         {provider.OIF, status(304, ""), quote.ProviderInvalid, "HTTP 304"},
		"204":                  {provider.OIF, status(204, ""), quote.ProviderInvalid, "HTTP 204"},
		"201":                  {provider.OIF, status(201, answers(provider.OIF, honest())), quote.ProviderInvalid, "HTTP 201"},
		"500":                  {provider.OIF, status(500, secret), quote.ProviderUnavailable, "HTTP 500"},
		"503":                  {provider.OIF, status(503, `{"error": "SOLVER_CAPACITY_EXCEEDED"}`), quote.ProviderUnavailable, "HTTP 503"},
		"endless 500":          {provider.OIF, endless(500, secret), quote.ProviderUnavailable, "HTTP 500"},
		"429":                  {provider.OIF, status(429, secret), quote.ProviderRateLimited, "HTTP 429"},
		"no asset":             {provider.OIF, status(422, `{"error": "UNSUPPORTED_ASSET", "message": "…"}`), quote.NoQuote, "HTTP 422"},
		"no liquidity":         {provider.OIF, status(422, `{"error": "INSUFFICIENT_LIQUIDITY"}`), quote.NoQuote, "HTTP 422"},
		"no settlement":        {provider.OIF, status(422, `{"error": "UNSUPPORTED_SETTLEMENT"}`), quote.NoQuote, "HTTP 422"},
		"no suitable one":      {provider.OIF, status(400, `{"error": "VALIDATION", "message": "No suitable settlement for eip155:1"}`), quote.NoQuote, "HTTP 400"},
		"dust":                 {provider.OIF, status(422, `{"message": "Output amount cannot be zero after cost adjustment"}`), quote.NoQuote, "HTTP 422"},
		"unknown token":        {provider.OIF, status(500, `{"error": "INTERNAL_ERROR", "message": "Token not supported: `+secret+`"}`), quote.NoQuote, "HTTP 500"},
		"unknown to LI.FI":     {provider.LIFI, status(503, `{"code": "`+secret+`"}`), quote.NoQuote, "HTTP 503"},
		"an empty error":       {provider.OIF, status(500, `{"error": ""}`), quote.ProviderUnavailable, "HTTP 500"},
		"an error of no text":  {provider.OIF, status(500, `{"error": {"code": "INTERNAL_ERROR"}, "code": 500}`), quote.ProviderUnavailable, "HTTP 500"},
		"a message alone":      {provider.OIF, status(500, `{"message": "Token not supported"}`), quote.ProviderUnavailable, "HTTP 500"},
		"no intake":            {provider.OIF, status(503, `{"error": "SOLVER_INTAKE_DISABLED"}`), quote.ProviderUnavailable, "HTTP 503"},
		"no capacity, in code": {provider.LIFI, status(500, `{"error": "busy", "code": "over_capacity"}`), quote.ProviderUnavailable, "HTTP 500"},
		"a proxy's 502":        {provider.OIF, status(502, `{"error": "INTERNAL_ERROR"}`), quote.ProviderUnavailable, "HTTP 502"},
		"a proxy's 504":        {provider.OIF, status(504, `{"code": "INTERNAL_ERROR"}`), quote.ProviderUnavailable, "HTTP 504"},
		"a slow 500":           {provider.OIF, slow500, quote.ProviderTimeout, "deadline exceeded"},
		"refusal":              {provider.LIFI, status(400, `{"message": "`+secret+`"}`), quote.ProviderRefused, "HTTP 400"},
		"unauthorized":         {provider.LIFI, status(401, secret), quote.ProviderRefused, "HTTP 401"},
		"not found":            {provider.OIF, status(404, "exact-output"), quote.ProviderRefused, "HTTP 404"},
		"the connection ends":  {provider.OIF, hijack(""), quote.ProviderUnavailable, "not HTTP"},
		"no HTTP":              {provider.OIF, hijack("X-Integrator-Key: " + secret + "\r\n\r\n"), quote.ProviderUnavailable, "not HTTP"},
		"no status":            {provider.OIF, hijack("HTTP/1.1 " + secret + "\r\n\r\n"), quote.ProviderUnavailable, "not HTTP"},
		"malformed header":     {provider.OIF, hijack("HTTP/1.1 200 OK\r\n" + secret + "\r\n\r\n"), quote.ProviderUnavailable, "not HTTP"},
		"body shorter than it": {provider.OIF, hijack("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}"), quote.ProviderUnavailable, "not HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := at(c.kind, serve(t, c.handle)+"/"+secret)
			e.Headers = map[string]telemetry.Secret{"X-Integrator-Key": secret}
			if c.want == quote.ProviderTimeout {
				e.Timeout = 100 * time.Millisecond
			}
			s := newSubject(t, e, nil)
			_, failure := s.Ask(t.Context(), account, route(quote.ExactInput), now)
			if failure == nil || failure.Code != c.want || !strings.Contains(failure.Error(), c.cause) {
				t.Fatalf("got %v, want %s: %s", failure, c.want, c.cause)
			}
			if diff := cmp.Diff(map[string]float64{string(c.want): 1}, s.counted(t, "intents_core_quote_failures_total")); diff != "" {
				t.Error(diff)
			}
			logged := s.log.String()
			if want := c.want != quote.NoQuote; strings.Contains(logged, `code=`+string(c.want)) != want || strings.Contains(logged, "host=127.0.0.1:") != want {
				t.Error(logged)
			}
			if told := failure.Error() + logged + fmt.Sprintf("%+v", failure); strings.Contains(told, secret) {
				t.Error("the secret is told: ", told)
			}
		})
	}
}

// A refusal that names exact output says that the provider has none, where it was asked for.
func TestProvider_Ask_ExactOutputUnsupported(t *testing.T) {
	t.Parallel()
	for _, kind := range []provider.Kind{provider.LIFI, provider.OIF} {
		for ask, want := range map[quote.Kind]quote.FailureCode{quote.ExactOutput: quote.ExactOutputUnsupported, quote.ExactInput: quote.ProviderRefused} {
			s := newSubject(t, at(kind, serve(t, status(400, `{"message": "swapType exact-output is not supported"}`))), nil)
			if got := s.outcome(t, route(ask)); got.Code != want {
				t.Errorf("%s, %s: %+v", kind, ask, got)
			}
		}
	}
}

// An address that must not be called is not, whether it is the URL's or a name's.
func TestProvider_Ask_PrivateAddress(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"http://127.0.0.2", "https://10.0.0.1", "http://169.254.169.254", "http://[::1]:8080", "https://1.1.1.1:22", "http://1.1.1.1"} {
		_, failure := newSubject(t, at(provider.OIF, url), nil).Ask(t.Context(), account, route(quote.ExactInput), now)
		if failure == nil || failure.Code != quote.ProviderUnavailable || !strings.Contains(failure.Error(), "must not be called") {
			t.Errorf("%s: %v", url, failure)
		}
	}
}

// Without a connection the cause says why.
func TestProvider_Ask_NoConnection(t *testing.T) {
	t.Parallel()
	untrusted := httptest.NewUnstartedServer(nil)
	untrusted.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	untrusted.StartTLS()
	t.Cleanup(untrusted.Close)
	plain := strings.Replace(serve(t, respond("")), "http:", "https:", 1)
	for url, cause := range map[string]string{closedURL(t): "connection refused", untrusted.URL: "certificate", plain: "not HTTP"} {
		_, failure := newSubject(t, at(provider.OIF, url), nil).Ask(t.Context(), account, route(quote.ExactInput), now)
		if failure == nil || failure.Code != quote.ProviderUnavailable || !strings.Contains(failure.Error(), cause) {
			t.Errorf("%v, want %s", failure, cause)
		}
	}
}
