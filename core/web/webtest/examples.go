package webtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"intents.internal/pkg/testkit/golden"
)

// ExamplesFile has bodies that this service has sent and accepted, in the package whose tests record them. The OpenAPI document takes its
// examples from it.
const ExamplesFile = "testdata/examples.json"

// Documented are the tests of a package that answers the documented paths which Answers selects.
type Documented struct {
	*testing.M

	Answers func(path string) bool
}

// Run runs the tests, then checks that they recorded every example of the package's file and got every documented response of these paths.
func (d Documented) Run() (code int) {
	code = d.M.Run()
	selected := false
	for _, name := range []string{"test.run", "test.skip", "test.list"} {
		selected = selected || flag.Lookup(name).Value.String() != ""
	}
	all := code == 0 && !selected
	if err := recordedExamples.finish(all); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	if missing, err := unanswered(d.Answers); all && (err != nil || len(missing) > 0) {
		fmt.Fprintf(os.Stderr, "no test gets these responses, which openapi.json has: %s %v\n", strings.Join(missing, ", "), err)
		return 1
	}
	return code
}

// Examples are bodies by operation, by "request" or status, and by name.
type Examples map[string]map[string]map[string]json.RawMessage

// exampleRecorder compares bodies with the recorded ones.
type exampleRecorder struct {
	mu       sync.Mutex
	recorded Examples
	seen     map[string]bool
	changed  bool
}

var recordedExamples = &exampleRecorder{seen: map[string]bool{}}

// Example makes a request as Call does, and compares its body and the response's with the recorded example of this name.
func (s *Service) Example(t *testing.T, name, method, path, body string, header ...string) Answer {
	t.Helper()
	response := s.Send(t, method, path, body, header...)
	raw := ReadAll(t, response)
	operation := OperationOf(t, method, path)
	if body != "" && response.StatusCode < 300 {
		CompareExample(t, operation, "request", name, body)
	}
	CompareExample(t, operation, strconv.Itoa(response.StatusCode), name, raw)
	return AnswerOf(t, response, raw)
}

// CompareExample compares the body of a part, "request" or a status, of an operation or an event with the recorded example of this name.
func CompareExample(t *testing.T, operation, part, name, body string) {
	t.Helper()
	r := recordedExamples
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.load(); err != nil {
		t.Fatal(err)
	}
	at := strings.Join([]string{operation, part, name}, "/")
	r.seen[at] = true
	recorded, ok := r.recorded[operation][part][name]
	want, got := constant(t, cmp.Or(string(recorded), "null")), constant(t, body)
	if ok && want == got {
		return
	}
	if !golden.Updates() {
		t.Errorf("the example %s differs; if the new body is right, run with UPDATE_GOLDEN=1\nwant %s\ngot  %s", at, want, got)
		return
	}
	if r.recorded[operation] == nil {
		r.recorded[operation] = map[string]map[string]json.RawMessage{}
	}
	if r.recorded[operation][part] == nil {
		r.recorded[operation][part] = map[string]json.RawMessage{}
	}
	r.recorded[operation][part][name] = json.RawMessage(withoutSecrets(body))
	r.changed = true
}

func (r *exampleRecorder) load() error {
	if r.recorded != nil {
		return nil
	}
	text, err := os.ReadFile(ExamplesFile)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, &r.recorded)
}

// finish writes what has changed. After a run of all tests, an example that none has recorded is an error.
func (r *exampleRecorder) finish(all bool) error {
	if all {
		if err := r.load(); err != nil {
			return err
		}
		for operation, parts := range r.recorded {
			for part, named := range parts {
				for name := range named {
					if at := strings.Join([]string{operation, part, name}, "/"); !r.seen[at] && golden.Updates() {
						delete(named, name)
						r.changed = true
					} else if !r.seen[at] {
						return fmt.Errorf("no test records the example %s", at)
					}
				}
			}
		}
	}
	if !r.changed {
		return nil
	}
	text, err := golden.Encode(r.recorded)
	if err != nil {
		return err
	}
	return os.WriteFile(ExamplesFile, text, 0o600)
}

// masks are what differs from run to run, and what stands for it in a comparison.
var masks = []struct {
	differs *regexp.Regexp
	mask    string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`), "<id>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3})?Z`), "<time>"},
	{regexp.MustCompile(`"(orderId|encoded|signature|digest)":"0x[0-9a-f]+"`), `"$1":"<$1>"`},
	{regexp.MustCompile(`0x(7515fd56|48f49eaf|49927074|cf092995)[0-9a-f]+`), "<call $1 with the order>"},
	{regexp.MustCompile(`sk_(test|live)_[A-Za-z0-9]{64}`), "<key $1>"},
	{regexp.MustCompile(`sk_(test|live)_[A-Za-z0-9]{4}"`), `<start $1>"`},
	{regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`), "<secret>"},
	{regexp.MustCompile(`ct_[A-Za-z0-9_-]{119}`), "<client token>"},
	{regexp.MustCompile(`"(nonce|next|after|cursor)":"[A-Za-z0-9_-]{22,}"`), `"$1":"<$1>"`},
	{regexp.MustCompile(`"(fillDeadline|expires)":\d+`), `"$1":"<time>"`},
	{regexp.MustCompile(`"(deadline|validBefore)":"\d+"`), `"$1":"<time>"`},
	{regexp.MustCompile(`"nonce":"0x[0-9a-f]{64}"`), `"nonce":"<nonce>"`},
	{regexp.MustCompile(`"nonce":"[0-9]{8,21}"`), `"nonce":"<nonce>"`},
	{regexp.MustCompile(`(state|nonce|code_challenge|token)=[A-Za-z0-9_-]+`), "$1=<$1>"},
	{
		regexp.MustCompile(`"(id|rawId|credentialID|publicKey|challenge|attestationObject|clientDataJSON|authenticatorData|signature|userHandle)":"[A-Za-z0-9_+/=-]{20,}"`),
		`"$1":"<$1>"`,
	},
	{regexp.MustCompile(`http://127\.0\.0\.1:\d+`), "https://provider.example"},
	{regexp.MustCompile(`Nonce: [A-Za-z0-9]+`), "Nonce: <nonce>"},
	{regexp.MustCompile(`The deadline is [0-9hms.]+ ahead`), "The deadline is <duration> ahead"},
}

// constant is the compact text of a body with masks for what differs from run to run.
func constant(t *testing.T, body string) string {
	t.Helper()
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(body)); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	text := compact.String()
	for _, m := range masks {
		text = m.differs.ReplaceAllString(text, m.mask)
	}
	return text
}

// secrets are replaced in the file by text of the same form.
var secrets = []struct {
	secret *regexp.Regexp
	text   string
}{
	{regexp.MustCompile(`sk_(test|live)_[A-Za-z0-9]{64}`), "sk_${1}_" + strings.Repeat("EXAMPLE0", 8)},
	{regexp.MustCompile(`sk_(test|live)_[A-Za-z0-9]{4}"`), `sk_${1}_EXAM"`},
	{regexp.MustCompile(`(state|nonce|code_challenge|token)=[A-Za-z0-9_-]+`), "$1=EXAMPLE"},
	{regexp.MustCompile(`whsec_[A-Za-z0-9+/=]+`), "whsec_RVhBTVBMRUVYQU1QTEVFWEFNUExFRVhBTVBMRUVYQU0="},
	{regexp.MustCompile(`ct_[A-Za-z0-9_-]{119}`), "ct_" + strings.Repeat("EXAMPLE", 17)},
	{regexp.MustCompile(`http://127\.0\.0\.1:\d+`), "https://provider.example"},
}

func withoutSecrets(body string) string {
	for _, s := range secrets {
		body = s.secret.ReplaceAllString(body, s.text)
	}
	return body
}
