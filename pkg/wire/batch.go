package wire

import (
	"encoding/binary"
	"errors"
)

// PathBatch carries out up to MaxBatchRequests of clients' requests that came together, as a POST with HeaderGatewaySecret and HeaderBatch. Its
// body is a frame for each request: a message with FieldMethod, FieldPath and the header fields that the gateway would send with it alone, without
// the secret. The body of the 200 has a frame with the response of each request, a message with FieldStatus and header fields, under the number of
// the request's frame, in the order in which core has answered them. Core has carried out none of the requests if HeaderCore of the response is
// CoreRefused, and only then: 404 means that it serves no batches of this version, any other status that it cannot carry this one out.
const PathBatch = "/internal/batch"

const (
	// HeaderBatch is set to BatchVersion on the response to PathReady by a core that serves PathBatch, and on each batch by the gateway.
	HeaderBatch = "X-Batch"
	// BatchVersion is the version of the frames and of what HeaderCore says of a batch. A core that sets no HeaderCore has a lower one or none,
	// so that it gets no batches.
	BatchVersion = "3"

	// MaxBatchRequests bounds the requests of a batch, and so how many wait for one connection.
	MaxBatchRequests = 64
	// MaxBatchedBytes bounds the body of a request in a batch. Longer ones are sent alone, so that they hold nobody up.
	MaxBatchedBytes = 4 << 10
	// MaxBatchBytes bounds the body of a batch.
	MaxBatchBytes = 512 << 10
)

// The fields of a message that are no header fields have the names of HTTP/2 (RFC 9113, 8.3).
const (
	FieldMethod = ":method"
	FieldPath   = ":path" // with the query
	FieldStatus = ":status"
)

// FrameHeadBytes is the length of a frame's head: the number of the request and the length of the message that follows, each an unsigned
// 32-bit integer in network byte order.
const FrameHeadBytes = 8

// ErrFrame means that a batch is not a sequence of whole frames, or a message not one of whole fields.
var ErrFrame = errors.New("the batch has a malformed frame")

// text is what messages are made of.
type text interface{ ~string | ~[]byte }

// valueHeadBytes is the length of the length of a field's value, an unsigned 32-bit integer in network byte order.
const valueHeadBytes = 4

// AppendField appends a field to a message: the length of its name in one byte, its name, the length of its value, its value. Nothing has to be
// escaped, so whoever reads it parses no text.
func AppendField[T text](b []byte, name string, value T) []byte {
	b = append(b, byte(len(name))) //nolint:gosec // the names of headers are shorter
	b = append(b, name...)
	b = binary.BigEndian.AppendUint32(b, uint32(len(value))) //nolint:gosec // messages are far shorter
	return append(b, value...)
}

// AppendBody ends the fields of a message, as an empty name does, and appends its body.
func AppendBody[T text](b []byte, body T) []byte { return append(append(b, 0), body...) }

// NextField returns the first field of a message and what follows it. An empty name ends the fields, and the rest is the body. They share the
// message's memory.
func NextField[T text](message T) (name, value, rest T, err error) {
	if len(message) == 0 {
		return name, value, rest, ErrFrame
	}
	n := 1 + int(message[0])
	if n == 1 {
		return name, value, message[1:], nil
	}
	if len(message) < n+valueHeadBytes {
		return name, value, rest, ErrFrame
	}
	name, rest = message[1:n], message[n:]
	length := uint64(rest[0])<<24 | uint64(rest[1])<<16 | uint64(rest[2])<<8 | uint64(rest[3])
	if rest = rest[valueHeadBytes:]; length > uint64(len(rest)) {
		return name, value, rest, ErrFrame
	}
	return name, rest[:length], rest[length:], nil
}

// AppendFrame appends a frame.
func AppendFrame(b []byte, number int, message []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(number))       //nolint:gosec // below MaxBatchRequests
	b = binary.BigEndian.AppendUint32(b, uint32(len(message))) //nolint:gosec // messages are far shorter
	return append(b, message...)
}

// ParseFrameHead returns the number and the length in a frame's head, whose FrameHeadBytes are in b. The length is at most limit, and the number
// below count.
func ParseFrameHead(b []byte, count, limit int) (number, length int, err error) {
	n, l := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:FrameHeadBytes])
	if uint64(n) >= uint64(count) || uint64(l) > uint64(limit) { //nolint:gosec // neither is negative
		return 0, 0, ErrFrame
	}
	return int(n), int(l), nil
}

// SplitBatch returns the messages of a batch's requests, which are numbered in their order. They share b's memory.
func SplitBatch(b []byte) (messages [][]byte, err error) {
	for len(b) > 0 {
		if len(b) < FrameHeadBytes || len(messages) == MaxBatchRequests {
			return nil, ErrFrame
		}
		number, length, err := ParseFrameHead(b, MaxBatchRequests, len(b)-FrameHeadBytes)
		if err != nil || number != len(messages) {
			return nil, ErrFrame
		}
		messages = append(messages, b[FrameHeadBytes:FrameHeadBytes+length])
		b = b[FrameHeadBytes+length:]
	}
	if len(messages) == 0 {
		return nil, ErrFrame
	}
	return messages, nil
}
