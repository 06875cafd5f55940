package wire

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// The bounds of an intent's labels; lengths are in characters.
const (
	MaxLabels           = 20
	MaxLabelKeyLength   = 40
	MaxLabelValueLength = 200
)

// LabelKeyRule and LabelValueRule are what the issues of a label say. The characters of keys need no escape in a query.
var (
	LabelKeyRule   = fmt.Sprintf("is not the key of a label: a key has 1 to %d ASCII letters, digits, dots, hyphens and underscores", MaxLabelKeyLength)
	LabelValueRule = fmt.Sprintf("must have 1 to %d characters, none of them a control character", MaxLabelValueLength)
)

// IsLabelKey reports whether a text can be the key of a label.
func IsLabelKey(text string) bool {
	if text == "" || len(text) > MaxLabelKeyLength {
		return false
	}
	return !strings.ContainsFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_'
	})
}

// IsLabelValue reports whether a text can be the value of a label.
func IsLabelValue(text string) bool {
	n := utf8.RuneCountInString(text)
	return n >= 1 && n <= MaxLabelValueLength && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// Labels are a client's own pairs of key and value of an intent: a JSON object in the order of its keys without whitespace, so that equal
// labels are equal texts, or the empty text for none.
type Labels string

// NewLabels returns the labels of pairs.
func NewLabels(pairs map[string]string) Labels {
	if len(pairs) == 0 {
		return ""
	}
	text := []byte{'{'}
	for n, key := range slices.Sorted(maps.Keys(pairs)) {
		if n > 0 {
			text = append(text, ',')
		}
		text = appendLabel(text, key, pairs[key])
	}
	return Labels(append(text, '}'))
}

// LabelText returns the text that labels contain if and only if they have this pair: no other label contains it, since keys have no
// character that JSON escapes, and a quote in a value is escaped.
func LabelText(key, value string) string { return string(appendLabel(nil, key, value)) }

func appendLabel(text []byte, key, value string) []byte {
	text, _ = jsontext.AppendQuote(text, key) // it fails only for invalid UTF-8, which it replaces
	text, _ = jsontext.AppendQuote(append(text, ':'), value)
	return text
}

// Pairs returns the labels by key, none for a text that NewLabels has not made.
func (l Labels) Pairs() map[string]string {
	pairs := map[string]string{}
	if json.Unmarshal([]byte(l), &pairs) != nil {
		return map[string]string{}
	}
	return pairs
}

// labels parses an object of labels. Without any it is the same as left out.
func (d *decoder) labels(labels *Labels) {
	var pairs map[string]string
	d.eachLabel(func(key string) {
		if value, ok := d.labelValue(); ok {
			if pairs == nil {
				pairs = map[string]string{}
			}
			pairs[key] = value
		}
	})
	*labels = NewLabels(pairs)
}

// eachLabel parses an object. It calls read at the value of each key that a label can have.
func (d *decoder) eachLabel(read func(key string)) {
	if d.broken {
		return
	}
	if d.in.PeekKind() != '{' {
		d.skip("must be an object")
		return
	}
	if !d.next() {
		return
	}
	count := 0
	for ; !d.broken && d.in.PeekKind() == '"'; count++ {
		if !d.string() {
			return
		}
		if key := string(d.word); IsLabelKey(key) {
			read(key)
		} else {
			d.skip(LabelKeyRule)
		}
	}
	if d.broken || !d.next() {
		return
	}
	if count > MaxLabels {
		d.issue(fmt.Sprintf("must not have more than %d labels", MaxLabels))
	}
}

func (d *decoder) labelValue() (string, bool) {
	text, ok := d.text()
	if ok && !IsLabelValue(text) {
		d.issue(LabelValueRule)
		return "", false
	}
	return text, ok
}
