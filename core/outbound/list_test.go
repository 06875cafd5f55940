package outbound_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"intents.internal/core/outbound"
)

func TestDecodeList(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		read int
		err  error
	}{
		`[]`: {}, ` [1, {"a": [2]}]`: {read: 2}, `[1,2,3]`: {read: 3}, `[1,2,3,4]`: {3, outbound.ErrTooManyElements},
		`[1,2,3` + strings.Repeat(",{}", 1<<20): {3, outbound.ErrTooManyElements},
	} {
		decoder, read := jsontext.NewDecoder(strings.NewReader(text)), 0
		err := outbound.DecodeList(decoder, 3, func() error {
			read++
			return decoder.SkipValue()
		})
		if read != want.read || !errors.Is(err, want.err) {
			t.Errorf("%.20s: %d elements, %v, want %+v", text, read, err, want)
		}
	}
	for _, text := range []string{``, `null`, `{}`, `7`, `[1`, `[1}`, `[1 2]`} {
		decoder := jsontext.NewDecoder(strings.NewReader(text))
		if err := outbound.DecodeList(decoder, 3, decoder.SkipValue); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}
