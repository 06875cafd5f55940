package wire

import (
	"encoding/binary"
	"errors"
)

// PathBatch carries out up to MaxBatchRequests of clients' requests that came together, as a POST with HeaderGatewaySecret. Its body is a
// frame for each request: an HTTP/1.1 request as the gateway would send it alone, without the secret. The body of the 200 has a frame with the
// HTTP/1.1 response of each request, under the number of the request's frame, in the order in which core has answered them. Any other status
// means that core has carried out none of them.
const PathBatch = "/internal/batch"

const (
	// HeaderBatch is set to BatchVersion on the response to PathReady by a core that serves PathBatch.
	HeaderBatch = "X-Batch"
	// BatchVersion is the version of the frames.
	BatchVersion = "1"

	// MaxBatchRequests bounds the requests of a batch, and so how many wait for one connection.
	MaxBatchRequests = 64
	// MaxBatchedBytes bounds the body of a request in a batch. Longer ones are sent alone, so that they hold nobody up.
	MaxBatchedBytes = 4 << 10
	// MaxBatchBytes bounds the body of a batch.
	MaxBatchBytes = 512 << 10
)

// FrameHeadBytes is the length of a frame's head: the number of the request and the length of the message that follows, each an unsigned
// 32-bit integer in network byte order.
const FrameHeadBytes = 8

// ErrFrame means that a batch is not a sequence of whole frames.
var ErrFrame = errors.New("the batch has a malformed frame")

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
