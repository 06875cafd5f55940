package upstream

import (
	"bufio"
	"io"
)

// frameBody reads the body of a batch's response as far as it has arrived, so that a wait for more can end at any byte and go on later; the chunked
// reader of net/http cannot. It reads the chunked coding of RFC 9112, 7.1, without the content of extensions and trailers.
type frameBody struct {
	// left is what is left of the body, or of the chunk.
	left      int
	isChunked bool
	// place is where in the coding the next byte is, size the length of the next chunk, overhead the bytes of the coding since the last content.
	place    place
	size     int
	overhead int
}

// place is a position in the chunked coding.
type place int

const (
	inContent place = iota
	afterContent
	beforeSize
	inSize
	inExtension
	endOfSize
	inTrailers
	inTrailer
	endOfTrailers
	atEnd
)

// maxOverhead bounds the coding between two parts of the content.
const maxOverhead = maxHeaderBytes

// newFrameBody returns the body of this length, chunked if it is unknown.
func newFrameBody(length int) *frameBody {
	switch length {
	case chunked:
		return &frameBody{isChunked: true, place: beforeSize}
	case 0:
		return &frameBody{place: atEnd}
	default:
		return &frameBody{left: length}
	}
}

// ended reports whether all of the body was read.
func (y *frameBody) ended() bool { return y.place == atEnd }

// read reads what is buffered, without a wait. It returns io.EOF at the end of the body.
func (y *frameBody) read(from *bufio.Reader, p []byte) (n int, err error) {
	for n < len(p) && y.place != atEnd && from.Buffered() > 0 {
		if y.place != inContent {
			c, _ := from.ReadByte() // it is buffered
			if err := y.step(c); err != nil {
				return n, err
			}
			continue
		}
		m, _ := from.Read(p[n:min(len(p), n+y.left)]) // the same
		n, y.left = n+m, y.left-m
		switch {
		case y.left > 0:
		case y.isChunked:
			y.place = afterContent
		default:
			y.place = atEnd
		}
	}
	if y.place == atEnd && n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// step reads a byte of the coding.
func (y *frameBody) step(c byte) error {
	if y.overhead++; y.overhead > maxOverhead {
		return errInvalidResponse
	}
	digit, isDigit := hexDigit(c)
	switch {
	case isDigit && (y.place == beforeSize || y.place == inSize):
		y.place, y.size = inSize, y.size<<4|digit
		if y.size > maxChunk {
			return errInvalidResponse
		}
	case y.place == inExtension && c != '\r', y.place == inTrailer && c != '\n':
	case y.place == inSize && (c == ';' || c == ' ' || c == '\t'):
		y.place = inExtension
	case (y.place == inSize || y.place == inExtension) && c == '\r':
		y.place = endOfSize
	case y.place == endOfSize && c == '\n':
		y.beginChunk()
	case y.place == afterContent && c == '\r': // the line feed is that of the line
	case y.place == afterContent && c == '\n':
		y.place = beforeSize
	case y.place == inTrailers && c == '\r':
		y.place = endOfTrailers
	case y.place == inTrailers:
		y.place = inTrailer
	case y.place == inTrailer: // its line ends
		y.place = inTrailers
	case y.place == endOfTrailers && c == '\n':
		y.place = atEnd
	default:
		return errInvalidResponse
	}
	return nil
}

// beginChunk begins a chunk of the size that was read; the last chunk has none, and trailers follow it.
func (y *frameBody) beginChunk() {
	if y.size == 0 {
		y.place = inTrailers
		return
	}
	y.place, y.left, y.size, y.overhead = inContent, y.size, 0, 0
}

// maxChunk bounds the length of a chunk.
const maxChunk = 1 << 30

func hexDigit(c byte) (digit int, ok bool) {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0'), true
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10, true
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10, true
	default:
		return 0, false
	}
}
