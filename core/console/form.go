package console

import (
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxFormBytes bounds a form. It is far above any that the console has, so that a field which is too long is told from
// a body which is.
const maxFormBytes = 64 << 10

// form is what was sent with a form, or nothing yet, and what is wrong with it.
type form struct {
	values map[string]string
	// Problems are in the order in which they were found.
	Problems []problem
}

// readForm reads the body of a POST, which may have these fields, each once. What no field can hold is a problem of the
// field; what the form does not have is an error.
func readForm(r *http.Request, fields ...string) (*form, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxFormBytes+1))
	if err != nil {
		return nil, errNotWhole
	}
	if len(body) > maxFormBytes {
		return nil, errTooLong
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); len(body) > 0 && (err != nil || media != "application/x-www-form-urlencoded") {
		return nil, errNotAForm
	}
	sent, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, errNotAForm
	}
	return newForm(sent, fields)
}

// readQuery is readForm for the query of a GET. done is there on any page.
func readQuery(r *http.Request, fields ...string) (*form, error) {
	sent, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, errNotAForm
	}
	return newForm(sent, append(fields, "done"))
}

func newForm(sent url.Values, fields []string) (*form, error) {
	f := &form{values: map[string]string{}}
	for name, given := range sent {
		if !slices.Contains(fields, name) || len(given) > 1 {
			return nil, errUnknownField
		}
	}
	for _, name := range fields {
		value := sent.Get(name)
		if strings.IndexByte(value, 0) >= 0 || !utf8.ValidString(value) {
			f.add(problem{status: http.StatusBadRequest, Field: name, Text: label(name) + " holds characters that cannot be stored."})
			value = ""
		}
		f.values[name] = value
	}
	return f, nil
}

// Value is what was typed into a field, clipped to what is sensible to type again.
func (f *form) Value(name string) string {
	const longest = 300
	value := f.values[name]
	if utf8.RuneCountInString(value) > longest {
		return string([]rune(value)[:longest])
	}
	return value
}

// is tells whether a field was sent with this value.
func (f *form) is(name, value string) bool { return f.values[name] == value }

// Chose tells whether an option was chosen, for the templates.
func (f *form) Chose(name, value string) bool { return f.is(name, value) }

// ok tells whether nothing is wrong so far.
func (f *form) ok() bool { return len(f.Problems) == 0 }

func (f *form) add(p problem) { f.Problems = append(f.Problems, p) }

// note makes a problem of an error that whoever sent the form can do something about, and returns any other.
func (f *form) note(err error) error {
	if err == nil {
		return nil
	}
	p := describe(err)
	if !p.correctable {
		return err
	}
	f.add(p)
	return nil
}

// number reads a field as a whole number; anything else is -1, which no rule takes.
func (f *form) number(name string) int64 {
	n, err := strconv.ParseInt(f.values[name], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// At is the place of a field, for the templates that tie its hint and its problem to it.
func (f *form) At(name string, hints ...string) place {
	p := place{Name: name, Hints: hints}
	for _, found := range f.Problems {
		if found.Field == name {
			p.Problem = found.Text
			break
		}
	}
	return p
}

// place is a field and what describes it.
type place struct {
	Name    string
	Hints   []string
	Problem string
}

// DescribedBy are the ids of the elements that describe the field.
func (p place) DescribedBy() string {
	ids := p.Hints
	if p.Problem != "" {
		ids = append(slices.Clone(ids), p.Name+"-problem")
	}
	return strings.Join(ids, " ")
}

// status is that of the page with this form.
func (f *form) status() int {
	if f.ok() {
		return http.StatusOK
	}
	return f.Problems[0].status
}

// announce sets the headers that belong to the problems.
func (f *form) announce(header http.Header) {
	for _, p := range f.Problems {
		if p.retryAfter > 0 {
			header.Set("Retry-After", strconv.Itoa(seconds(p.retryAfter)))
		}
	}
}

// seconds rounds up, to one at least.
func seconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }
