package api_test

import (
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

const (
	notAccount = "must be a CAIP-10 account id such as eip155:1:0x0000000000000000000000000000000000000001"
	notAmount  = "must be a whole number of the token's smallest unit in decimal digits, without sign or leading zeros"
	notTime    = "must be an RFC 3339 time such as 2027-01-01T00:00:00Z"
	hasNUL     = "must not hold a NUL character"
)

func TestCreateTransfer_InvalidFields(t *testing.T) {
	t.Parallel()
	s := start(t)
	source := func(account, token, amount string) string {
		return webtest.Body(account, token, amount, webtest.BobOnSepolia, "", "", "")
	}
	with := func(rest string) string {
		return webtest.Body(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5", webtest.BobOnSepolia, "", "", ","+rest)
	}
	for name, c := range map[string]struct {
		body   string
		issues []string // of which "…" stands for any message
	}{
		"an empty object":    {`{}`, []string{"/source", "is required", "/destination", "is required"}},
		"empty legs":         {`{"source":{},"destination":{}}`, []string{"/source/account", "is required", "/source/token", "is required", "/source/amount", "is required", "/destination/account", "is required"}},
		"not JSON":           {`hello`, []string{"", "…"}},
		"cut off":            {webtest.TransferBody[:50], []string{"/source/account", "…"}},
		"an array":           {`[` + webtest.TransferBody + `]`, []string{"", "must be an object"}},
		"null":               {`null`, []string{"", "must be an object"}},
		"a string":           {`"transfer"`, []string{"", "must be an object"}},
		"a second value":     {webtest.TransferBody + `{}`, []string{"", "…"}},
		"trailing text":      {webtest.TransferBody + `x`, []string{"", "…"}},
		"a comment":          {`/* hi */` + webtest.TransferBody, []string{"", "…"}},
		"a trailing comma":   {strings.TrimSuffix(webtest.TransferBody, "}") + `,}`, []string{"", "…"}},
		"a byte order mark":  {"\ufeff" + webtest.TransferBody, []string{"", "…"}},
		"invalid UTF-8":      {with(`"reference":"` + "\xff" + `"`), []string{"/reference", "…"}},
		"half a surrogate":   {with(`"reference":"\ud83d"`), []string{"/reference", "…"}},
		"a NUL":              {with(`"reference":"a\u0000b"`), []string{"/reference", hasNUL}},
		"a raw control":      {with(`"reference":"a` + "\n" + `b"`), []string{"/reference", "…"}},
		"an empty reference": {with(`"reference":""`), []string{"/reference", "must have 1 to 128 characters"}},
		"a long reference":   {with(`"reference":"` + strings.Repeat("é", 129) + `"`), []string{"/reference", "must have 1 to 128 characters"}},
		"a null reference":   {with(`"reference":null`), []string{"/reference", "must be a string"}},

		"a name twice":           {with(`"reference":"a","reference":"a"`), []string{"/reference", "is given twice"}},
		"a leg twice":            {with(`"source":{}`), []string{"/source", "is given twice"}},
		"a name twice, escaped":  {with(`"reference":"a","referenc\u0065":"a"`), []string{"/reference", "is given twice"}},
		"a leg's field twice":    {strings.Replace(webtest.TransferBody, `"amount":"5"`, `"amount":"5","amount":"6"`, 1), []string{"/source/amount", "is given twice"}},
		"an unknown name":        {with(`"metadata":{"a":[1,2]}`), []string{"/metadata", "is not a known field"}},
		"a name in another case": {with(`"Reference":"a"`), []string{"/Reference", "is not a known field"}},
		"unknown names in a leg": {strings.Replace(webtest.TransferBody, `"amount":"5"`, `"amount":"5","a/b":1,"c~d":1`, 1), []string{"/source/a~1b", "is not a known field", "/source/c~0d", "is not a known field"}},
		"another account":        {with(`"accountId":"` + uuid.NewString() + `"`), []string{"/accountId", "is not a known field"}},

		"an amount as a number":    {strings.Replace(webtest.TransferBody, `"5"`, `5`, 1), []string{"/source/amount", "must be a string"}},
		"a leg as a string":        {strings.Replace(webtest.TransferBody, `{"account":"`+webtest.BobOnSepolia+`"}`, `"`+webtest.BobOnSepolia+`"`, 1), []string{"/destination", "must be an object"}},
		"a deadline as a number":   {with(`"deadline":1767225600`), []string{"/deadline", "must be a string"}},
		"a negative amount":        {source(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "-5"), []string{"/source/amount", notAmount}},
		"a fraction":               {source(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "5.0"), []string{"/source/amount", notAmount}},
		"a leading zero":           {source(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "05"), []string{"/source/amount", notAmount}},
		"hexadecimal":              {source(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "0x5"), []string{"/source/amount", notAmount}},
		"other digits":             {source(webtest.AliceOnSepolia, webtest.SepoliaUSDC, "٥"), []string{"/source/amount", notAmount}},
		"an empty amount":          {strings.Replace(webtest.TransferBody, `"5"`, `""`, 1), []string{"/source/amount", notAmount}},
		"a date for a deadline":    {with(`"deadline":"2027-01-01"`), []string{"/deadline", notTime}},
		"the 30th of February":     {with(`"deadline":"2027-02-30T00:00:00Z"`), []string{"/deadline", notTime}},
		"a bare address":           {source(webtest.Alice, webtest.SepoliaUSDC, "5"), []string{"/source/account", notAccount}},
		"a bare chain":             {source("eip155:1", webtest.SepoliaUSDC, "5"), []string{"/source/account", notAccount}},
		"a short address":          {source(webtest.AliceOnSepolia[:len(webtest.AliceOnSepolia)-1], webtest.SepoliaUSDC, "5"), []string{"/source/account", "must be an EVM address: 0x and 40 hexadecimal digits"}},
		"a wrong checksum":         {source(strings.Replace(webtest.AliceOnSepolia, "0xf3", "0xF3", 1), webtest.SepoliaUSDC, "5"), []string{"/source/account", "the address has a wrong EIP-55 checksum; copy it again or write it all in lower case"}},
		"a chain in upper case":    {source("EIP155:1:"+webtest.Alice, webtest.SepoliaUSDC, "5"), []string{"/source/account", "must be a CAIP-2 chain id such as eip155:1"}},
		"a chain number with zero": {source("eip155:01:"+webtest.Alice, webtest.SepoliaUSDC, "5"), []string{"/source/account", "the eip155 reference must be a decimal chain number of 1 to 16 digits without leading zeros"}},
		"a symbol for a token":     {source(webtest.AliceOnSepolia, "USDC", "5"), []string{"/source/token", notAccount}},
		"several faults": {
			webtest.Body("x", "y", "z", "w", "v", "u", `,"deadline":"t","reference":"","more":1`),
			[]string{
				"/source/account", notAccount, "/source/token", notAccount, "/source/amount", notAmount,
				"/destination/account", notAccount, "/destination/token", notAccount, "/destination/amount", notAmount,
				"/deadline", notTime, "/reference", "must have 1 to 128 characters", "/more", "is not a known field",
			},
		},
	} {
		got := s.Call(t, "POST", "/v2/transfers", c.body, webtest.Keyed(uuid.New(), "test")...)
		webtest.Same(t, name, webtest.Invalid(t, c.issues...), webtest.MaskMessages(got, c.issues))
	}
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM transfers`); n != 0 {
		t.Errorf("%d refused requests were stored", n)
	}
}

func TestCreateTransfer_InvalidBody(t *testing.T) {
	t.Parallel()
	s := start(t)
	sized := func(bytes int) string {
		return webtest.TransferBody + strings.Repeat(" ", bytes-len(webtest.TransferBody))
	}
	tooLarge := webtest.TooLarge(t)
	wrongType := webtest.Refused(t, 415, "UNSUPPORTED_MEDIA_TYPE", "Send the body as application/json.")
	for name, c := range map[string]struct {
		body, mediaType string
		want            webtest.Answer
	}{
		"a byte too many":                {sized(16<<10 + 1), "application/json", tooLarge},
		"a megabyte that is not JSON":    {strings.Repeat("x", 1<<20), "application/json", tooLarge},
		"too many bytes of another type": {sized(16<<10 + 1), "text/plain", tooLarge},
		"no type":                        {webtest.TransferBody, "", wrongType},
		"another type":                   {webtest.TransferBody, "text/plain", wrongType},
		"a form":                         {webtest.TransferBody, "application/x-www-form-urlencoded", wrongType},
		"a type like it":                 {webtest.TransferBody, "application/jsonp", wrongType},
		"no type that can be read":       {webtest.TransferBody, ";;", wrongType},
		"no body":                        {"", "application/json", webtest.Invalid(t, "", "…")},
	} {
		got := s.Call(t, "POST", "/v2/transfers", c.body, append(webtest.Keyed(uuid.New(), "test"), "Content-Type", c.mediaType)...)
		webtest.Same(t, name, c.want, webtest.MaskMessages(got, []string{"", "…"}))
	}
	for name, c := range map[string]struct{ body, mediaType string }{
		"the last byte that fits": {sized(16 << 10), "application/json"},
		"a type with a charset":   {webtest.TransferBody, "application/json; charset=utf-8"},
		"a type in other letters": {webtest.TransferBody, "Application/JSON"},
	} {
		if got := s.Call(t, "POST", "/v2/transfers", c.body, append(webtest.Keyed(uuid.New(), "test"), "Content-Type", c.mediaType)...); got.Status != 201 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	webtest.Same(t, "query", webtest.Invalid(t, "dry-run", "is not a known parameter"),
		s.Call(t, "POST", "/v2/transfers?dry-run=1", webtest.TransferBody, webtest.Keyed(uuid.New(), "test")...))
}
