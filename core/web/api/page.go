package api

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/zstd"

	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// page is a complete response. Its entity tag is a hash of the content, so it is the same on every core.
type page struct {
	mediaType string
	cache     route.CachePolicy
	body      []byte
	etag      string
	// encoded are the body in each of wire.Codings, of a page that is served often: each is made when it is first asked for.
	encoded map[string]func() []byte
}

// newPage returns a JSON page of one account that may change at any time.
func newPage(body []byte) page {
	return page{mediaType: "application/json", cache: route.CachedByCaller, body: body, etag: etagOf(body)}
}

// etagOf returns a weak tag, because a compressed response has other bytes and the same meaning. The tag is the XXH64 of the body
// and its length. It need not resist forgery: a client that forges a page reads only its own.
func etagOf(body []byte) string {
	var sum [12]byte
	binary.BigEndian.PutUint64(sum[:], xxhash.Sum64(body))
	binary.BigEndian.PutUint32(sum[8:], uint32(len(body))) //nolint:gosec // a page is far below 4 GiB
	return `W/"` + hex.EncodeToString(sum[:]) + `"`
}

// packPage encodes a value as a page that is compressed once.
func packPage(value any) (page, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return page{}, fmt.Errorf("write the registry: %w", err)
	}
	return newPage(body).pack(), nil
}

// pack adds the encoded variants.
func (p page) pack() page {
	const minBytes = 1024 // compressing a smaller body saves less than the headers cost
	if len(p.body) < minBytes {
		return p
	}
	p.encoded = map[string]func() []byte{
		"zstd": sync.OnceValue(func() []byte { return zstdEncoder().EncodeAll(p.body, nil) }),
		"gzip": sync.OnceValue(func() []byte { return gzipped(p.body) }),
	}
	return p
}

// zstdEncoder is one for all pages, because each has tables of megabytes.
var zstdEncoder = sync.OnceValue(func() *zstd.Encoder {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBetterCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		panic(err) // the options are constant
	}
	return encoder
})

func gzipped(body []byte) []byte {
	var buffer bytes.Buffer
	writer, err := gzip.NewWriterLevel(&buffer, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is constant
	}
	_, _ = writer.Write(body) // writes to a bytes.Buffer do not fail
	_ = writer.Close()
	return buffer.Bytes()
}

// serve writes the page, or 304 if the client has it.
func (p page) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	p.cache.Allow(header, p.etag)
	if wire.MatchesETag(r.Header.Get("If-None-Match"), p.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", p.mediaType)
	body := p.body
	coding := wire.PreferredCoding(r.Header.Get("Accept-Encoding"))
	if encode, ok := p.encoded[coding]; ok {
		header.Set("Content-Encoding", coding)
		body = encode()
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // it fails only if the client disconnected
}
