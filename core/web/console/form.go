package console

import (
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"intents.internal/pkg/wire"
)

// maxFormBytes bounds a form. It is far above the size of the console's forms, so that an error can distinguish a field that is
// too long from a body that is too long.
const maxFormBytes = 64 << 10

// form holds the values of a form and their errors; it is empty before the form is sent.
type form struct {
	values map[string]string
	// sent is the last step of the path of a form that was sent, empty before that.
	sent string
	// Errors are in the order in which they were found.
	Errors []pageError
}

// render writes a page with a form: the form before it is sent, and the form again with the errors of its fields.
type render func(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error

// submit carries out a form without errors and returns the path to redirect to, or answers itself and returns none.
type submit func(w http.ResponseWriter, r *http.Request, user currentUser, f *form) (target string, err error)

// showPage returns the page of a GET whose query may have these fields.
func showPage(show render, fields ...string) page {
	return func(w http.ResponseWriter, r *http.Request, user currentUser) error {
		f, err := readQuery(r, fields...)
		if err != nil {
			return err
		}
		return show(w, r, user, f)
	}
}

// submitForm returns the page of a POST whose form may have these fields. An error that the user can correct shows the form again.
func submitForm(do submit, again render, fields ...string) page {
	return func(w http.ResponseWriter, r *http.Request, user currentUser) error {
		f, err := readForm(r, fields...)
		if err != nil {
			return err
		}
		target := ""
		if f.ok() {
			target, err = do(w, r, user, f)
			if err := f.note(err); err != nil {
				return err
			}
		}
		if !f.ok() {
			return again(w, r, user, f)
		}
		if target != "" {
			redirect(w, r, target)
		}
		return nil
	}
}

// submitButton is submitForm for a form without fields that the user fills in: every error is a page of its own.
func submitButton(do submit, fields ...string) page {
	return func(w http.ResponseWriter, r *http.Request, user currentUser) error {
		f, err := readForm(r, fields...)
		if err != nil {
			return err
		}
		target, err := do(w, r, user, f)
		if err != nil {
			return err
		}
		redirect(w, r, target)
		return nil
	}
}

// readForm parses the body of a POST, which may have these fields, each once. A value with a NUL byte or invalid UTF-8 is an
// error of its field; an unknown or repeated field is an error of the request.
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
	f, err := newForm(sent, fields)
	if err != nil {
		return nil, err
	}
	f.sent = path.Base(r.URL.Path)
	return f, nil
}

// readQuery is readForm for the query of a GET. The parameter done is allowed on every page, and account where a form is sent to
// the page's own path.
func readQuery(r *http.Request, fields ...string) (*form, error) {
	sent, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, errNotAForm
	}
	return newForm(sent, append(fields, "done", "account"))
}

func newForm(sent url.Values, fields []string) (*form, error) {
	f := &form{values: map[string]string{}}
	for name, given := range sent {
		if !slices.Contains(fields, name) || len(given) > 1 {
			return nil, errUnknownField
		}
	}
	for _, name := range fields {
		if !sent.Has(name) {
			continue
		}
		value := sent.Get(name)
		if strings.IndexByte(value, 0) >= 0 || !utf8.ValidString(value) {
			f.add(pageError{status: http.StatusBadRequest, Field: name, Text: label(name) + " holds characters that cannot be stored."})
			value = ""
		}
		f.values[name] = value
	}
	return f, nil
}

// Value returns the value of a field, truncated for the page that shows it again.
func (f *form) Value(name string) string {
	const longest = 300
	value := f.values[name]
	if utf8.RuneCountInString(value) > longest {
		return string([]rune(value)[:longest])
	}
	return value
}

// is reports whether a field was sent with this value.
func (f *form) is(name, value string) bool { return f.values[name] == value }

// Chose reports whether an option was chosen, for the templates.
func (f *form) Chose(name, value string) bool { return f.is(name, value) }

// ok reports whether the form has no error so far.
func (f *form) ok() bool { return len(f.Errors) == 0 }

func (f *form) add(e pageError) { f.Errors = append(f.Errors, e) }

// note adds an error that the user can correct to the form, and returns any other error.
func (f *form) note(err error) error {
	if err == nil {
		return nil
	}
	e := toPageError(err)
	if !e.correctable {
		return err
	}
	f.add(e)
	return nil
}

// number parses a field as a whole number. For anything else it returns -1, which every rule rejects.
func (f *form) number(name string) int64 {
	n, err := strconv.ParseInt(f.values[name], 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// At returns the help of a field, for the templates that refer to its hints and its error in aria-describedby.
func (f *form) At(name string, hints ...string) fieldHelp {
	help := fieldHelp{Name: name, Hints: hints}
	for _, found := range f.Errors {
		if found.Field == name {
			help.Error = found.Text
			break
		}
	}
	return help
}

// fieldHelp is a field and the elements that describe it.
type fieldHelp struct {
	Name  string
	Hints []string
	Error string
}

// DescribedBy returns the ids of the elements that describe the field.
func (h fieldHelp) DescribedBy() string {
	ids := h.Hints
	if h.Error != "" {
		ids = append(slices.Clone(ids), h.Name+"-problem")
	}
	return strings.Join(ids, " ")
}

// status returns the HTTP status of the page with this form.
func (f *form) status() int {
	if f.ok() {
		return http.StatusOK
	}
	return f.Errors[0].status
}

// announce sets the headers of the form's errors, and tells what waits for the durability of what they tell.
func (f *form) announce(w http.ResponseWriter) {
	recorder, confirms := w.(interface{ Repeated() })
	for _, p := range f.Errors {
		if p.repeated && confirms {
			recorder.Repeated()
		}
		if p.retryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(wire.RetryAfter(p.status, seconds(p.retryAfter))))
		}
	}
}

// seconds rounds up, to at least one.
func seconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }
