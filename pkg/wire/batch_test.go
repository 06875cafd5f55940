package wire_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/pkg/wire"
)

func TestSplitBatch(t *testing.T) {
	t.Parallel()
	var whole []byte
	want := [][]byte{[]byte("first"), {}, []byte("third")}
	for number, message := range want {
		whole = wire.AppendFrame(whole, number, message)
	}
	got, err := wire.SplitBatch(whole)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, messages (-want +got):\n%s", err, diff)
	}
	for cut := range whole {
		messages, err := wire.SplitBatch(whole[:cut])
		if len(messages) == len(want) || err != nil && !errors.Is(err, wire.ErrFrame) {
			t.Errorf("%d of %d bytes: %d messages, %v", cut, len(whole), len(messages), err)
		}
	}
	if _, err := wire.SplitBatch(wire.AppendFrame(nil, 1, []byte("second"))); !errors.Is(err, wire.ErrFrame) {
		t.Errorf("without the first: %v", err)
	}
}

func TestParseFrameHead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		number, length, count, limit int
		ok                           bool
	}{
		{0, 0, 1, 0, true}, {1, 5, 2, 5, true}, {2, 5, 2, 5, false}, {1, 6, 2, 5, false}, {0, 0, 0, 0, false},
	} {
		head := wire.AppendFrame(nil, c.number, bytes.Repeat([]byte("x"), c.length))
		number, length, err := wire.ParseFrameHead(head, c.count, c.limit)
		if (err == nil) != c.ok || c.ok && (number != c.number || length != c.length) {
			t.Errorf("%+v: %d, %d, %v", c, number, length, err)
		}
	}
}

// What is split is what was joined, and nothing else is a batch.
func FuzzSplitBatch(f *testing.F) {
	f.Add([]byte{})
	f.Add(wire.AppendFrame(wire.AppendFrame(nil, 0, []byte("a")), 1, []byte("b")))
	f.Add([]byte("\x00\x00\x00\x00\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, batch []byte) {
		messages, err := wire.SplitBatch(batch)
		if err != nil {
			return
		}
		var again []byte
		for number, message := range messages {
			again = wire.AppendFrame(again, number, message)
		}
		if len(messages) == 0 || len(messages) > wire.MaxBatchRequests || !bytes.Equal(batch, again) {
			t.Errorf("%q is split into %d messages, which make %q", batch, len(messages), again)
		}
	})
}

// A message is read as it was written, whatever its names and values are made of, and never beyond its end.
func TestNextField(t *testing.T) {
	t.Parallel()
	fields := []string{wire.FieldPath, "/a?b", "X-Empty", "", "X-Any", "\x00: \r\n", "X-Long", string(make([]byte, 300))}
	var message []byte
	for field := range slices.Chunk(fields, 2) {
		message = wire.AppendField(message, field[0], field[1])
	}
	message = wire.AppendBody(message, "the body")
	for cut := range len(message) + 1 {
		var got []string
		rest := string(message[:cut])
		for {
			name, value, more, err := wire.NextField(rest)
			if err != nil && (!errors.Is(err, wire.ErrFrame) || cut >= len(message)-len("the body")) {
				t.Errorf("cut to %d of %d bytes: %v", cut, len(message), err)
			}
			if err != nil {
				break
			}
			if rest = more; name == "" {
				if diff := cmp.Diff(append(slices.Clone(fields), "the body"[:cut-len(message)+len("the body")]), append(got, rest)); diff != "" {
					t.Errorf("cut to %d bytes (-want +got):\n%s", cut, diff)
				}
				break
			}
			got = append(got, name, value)
		}
	}
}

// What is read of a message makes the same message again.
func FuzzNextField(f *testing.F) {
	f.Add([]byte{})
	f.Add(wire.AppendBody(wire.AppendField(nil, "a", "b"), "c"))
	f.Add([]byte("\x01a\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, message []byte) {
		var again []byte
		for rest := message; ; {
			name, value, more, err := wire.NextField(rest)
			if err != nil {
				return
			}
			if rest = more; len(name) == 0 {
				again = wire.AppendBody(again, rest)
				break
			}
			again = wire.AppendField(again, string(name), value)
		}
		if !bytes.Equal(message, again) {
			t.Errorf("%q is read as %q", message, again)
		}
	})
}
