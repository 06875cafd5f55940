package list

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"intents.internal/pkg/caip"
)

const (
	byteOrderMark = "\ufeff"
	boundPrefix   = caip.EIP155 + ":"
	addressLength = len("0x") + 2*len(Address{})
	// maxLabel bounds the bytes of a label; the rest is cut off.
	maxLabel = 200
)

// The reasons of faults. None quotes the line.
const (
	notAddress = "must be an address of 0x and 40 hexadecimal digits; what follows it must be apart"
	notBound   = "must be " + boundPrefix + "CHAIN:0x…, with the number of an EVM chain"
	noLabel    = "takes an address out and does not say why; write a label after it, such as a ticket"
	boundOut   = "takes an address out of one chain; it takes it out wholly, so leave the chain out"
	controlled = "has a control character"
	tooMany    = "is one entry too many: a file has a million at most"
	notJSON    = `must be a JSON array of strings, or of objects with "address" and perhaps "label"`
)

// parser reads the entries of a file.
type parser struct {
	file *File
	// labels are the indexes of the file's texts.
	labels map[string]uint32
}

// lines reads a file with one entry a line.
func (p *parser) lines(text string) error {
	number := 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		if err := p.line(line, number); err != nil {
			return err
		}
	}
	return nil
}

// line reads a line: an entry with its label, a comment, or nothing. Other lines are skipped.
func (p *parser) line(line string, number int) error {
	text := strings.TrimSpace(strings.TrimPrefix(line, byteOrderMark))
	e := entry{line: uint32(number), chain: everyChain} //nolint:gosec // at most 64 Mi lines
	fault := func(reason string) error { return &FaultError{p.file.Path, number, reason} }
	rest := text
	switch {
	case text == "" || text[0] == '#':
		return nil
	case text[0] == '!':
		e.exception, rest = true, text[1:]
		if isBound(rest) {
			return fault(boundOut)
		}
	case isBound(text):
		reference, after, ok := strings.Cut(text[len(boundPrefix):], ":")
		chain, err := caip.ParseChainID(boundPrefix + reference)
		if !ok || err != nil || text[:len(boundPrefix)] != boundPrefix {
			return fault(notBound)
		}
		e.chain, _ = chain.Number()
		rest = after
	case !startsHex(text):
		p.file.Skipped++
		return nil
	}
	label, ok := e.setAddress(rest)
	switch {
	case !ok:
		return fault(notAddress)
	case strings.ContainsFunc(label, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }):
		return fault(controlled)
	case e.exception && strings.TrimSpace(label) == "":
		return fault(noLabel)
	case len(p.file.entries) == MaxEntries:
		return fault(tooMany)
	}
	e.label = p.labelIndex(label)
	p.file.entries = append(p.file.entries, e)
	return nil
}

func isBound(text string) bool {
	return len(text) >= len(boundPrefix) && strings.EqualFold(text[:len(boundPrefix)], boundPrefix)
}

func startsHex(text string) bool { return len(text) >= 2 && text[0] == '0' && text[1]|0x20 == 'x' }

// setAddress reads the address at the beginning of a text, and returns the label after it.
func (e *entry) setAddress(text string) (label string, ok bool) {
	if len(text) < addressLength {
		return "", false
	}
	if e.address, ok = ParseAddress(text[:addressLength]); !ok {
		return "", false
	}
	after := text[addressLength:]
	if next, _ := utf8.DecodeRuneInString(after); after != "" && !unicode.IsSpace(next) && !strings.ContainsRune(",;", next) {
		return "", false
	}
	return strings.TrimLeft(after, " \t,;"), true
}

// labelIndex stores a label once.
func (p *parser) labelIndex(label string) uint32 {
	label = strings.ToValidUTF8(strings.TrimSpace(label), "�")
	for len(label) > maxLabel {
		_, size := utf8.DecodeLastRuneInString(label)
		label = label[:len(label)-size]
	}
	n, known := p.labels[label]
	if !known {
		n = uint32(len(p.file.texts)) //nolint:gosec // a file has a million labels at most
		p.labels[label], p.file.texts = n, append(p.file.texts, label)
	}
	return n
}

// array reads a JSON file. An element is a string, or an object whose members make a line.
func (p *parser) array(text []byte) error {
	text = bytes.TrimPrefix(text, []byte(byteOrderMark))
	decoder := jsontext.NewDecoder(bytes.NewReader(text))
	fault := func() error {
		read := decoder.InputOffset()
		next := len(text) - len(bytes.TrimLeft(text[read:], " \t\r\n,"))
		return &FaultError{p.file.Path, 1 + bytes.Count(text[:next], []byte("\n")), notJSON}
	}
	if token, err := decoder.ReadToken(); err != nil || token.Kind() != '[' {
		return fault()
	}
	// Lines are counted from the last element on, so that a long file is not counted once for each.
	counted, number := int64(0), 1
	for decoder.PeekKind() != ']' {
		line, ok := element(decoder)
		if !ok {
			return fault()
		}
		number += bytes.Count(text[counted:decoder.InputOffset()], []byte("\n"))
		counted = decoder.InputOffset()
		if err := p.line(line, number); err != nil {
			return err
		}
	}
	if _, err := decoder.ReadToken(); err != nil {
		return fault()
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return fault()
	}
	return nil
}

// element reads a string, or an object with an address and perhaps a label.
func element(decoder *jsontext.Decoder) (line string, ok bool) {
	token, err := decoder.ReadToken()
	switch {
	case err != nil:
		return "", false
	case token.Kind() == '"':
		return token.String(), true
	case token.Kind() != '{':
		return "", false
	}
	var address, label string
	for decoder.PeekKind() != '}' {
		name, err := decoder.ReadToken()
		if err != nil {
			return "", false
		}
		member := name.String() // before the next token takes its place
		value, err := decoder.ReadToken()
		if err != nil || value.Kind() != '"' {
			return "", false
		}
		switch member {
		case "address":
			address = value.String()
		case "label":
			label = value.String()
		default:
			return "", false
		}
	}
	if _, err := decoder.ReadToken(); err != nil || address == "" {
		return "", false
	}
	return address + " " + label, true
}
