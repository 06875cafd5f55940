package api

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// page is a whole answer. Its entity tag is taken from the content and so is the same on every core; it may be empty.
type page struct {
	mediaType    string
	cacheControl string
	body         []byte
	etag         string
	// packed are the body's compressed forms, best first, of a page that is served often; others are compressed as they
	// are sent.
	packed []packed
}

type packed struct {
	coding string
	body   []byte
}

// newPage is a page of JSON that belongs to one account's client and may change at any time.
func newPage(body []byte) page {
	sum := sha256.Sum256(body)
	// The tag is weak because a compressed answer has other bytes and the same meaning.
	etag := `W/"` + hex.EncodeToString(sum[:12]) + `"`
	return page{mediaType: "application/json", cacheControl: "private, no-cache", body: body, etag: etag}
}

// newAsset is a page for everybody that changes only with the program. It is open to all, so it is compressed once and
// not for each who asks.
func newAsset(mediaType string, body []byte) (page, error) {
	return page{mediaType: mediaType, cacheControl: "public, max-age=300", body: body}.pack()
}

// packPage encodes a value and compresses it, once for all who will ask for it.
func packPage(value any) (page, error) {
	body, err := json.Marshal(value)
	if err != nil {
		return page{}, fmt.Errorf("write the registry: %w", err)
	}
	return newPage(body).pack()
}

// pack adds the compressed forms.
func (p page) pack() (page, error) {
	const worthIt = 1024 // bytes; below, headers weigh more than what is saved
	if len(p.body) < worthIt {
		return p, nil
	}
	zstdWriter, err := zstd.NewWriter(nil)
	if err != nil {
		return page{}, fmt.Errorf("prepare compression: %w", err)
	}
	var gzipped bytes.Buffer
	gzipWriter := gzip.NewWriter(&gzipped)
	_, _ = gzipWriter.Write(p.body) // a bytes.Buffer takes everything
	_ = gzipWriter.Close()
	p.packed = []packed{{"zstd", zstdWriter.EncodeAll(p.body, nil)}, {"gzip", gzipped.Bytes()}}
	return p, nil
}

// serve answers with the page, or with 304 if the client has it.
func (p page) serve(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", p.cacheControl)
	if p.etag != "" {
		header.Set("ETag", p.etag)
	}
	if p.etag != "" && p.known(r.Header.Get("If-None-Match")) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", p.mediaType)
	body := p.body
	for _, form := range p.packed {
		if accepts(r.Header.Get("Accept-Encoding"), form.coding) {
			header.Set("Content-Encoding", form.coding)
			body = form.body
			break
		}
	}
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write(body) // the client is gone if this fails
}

// known compares entity tags weakly, as RFC 9110 section 13.1.2 asks for If-None-Match.
func (p page) known(ifNoneMatch string) bool {
	for tag := range strings.SplitSeq(ifNoneMatch, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || tag == p.etag || "W/"+tag == p.etag {
			return true
		}
	}
	return false
}

// accepts tells whether an Accept-Encoding header names a coding and does not weigh it with 0.
func accepts(acceptEncoding, coding string) bool {
	for offer := range strings.SplitSeq(acceptEncoding, ",") {
		name, weight, _ := strings.Cut(offer, ";")
		if !strings.EqualFold(strings.TrimSpace(name), coding) {
			continue
		}
		_, q, _ := strings.Cut(weight, "=")
		return strings.Trim(strings.TrimSpace(q), "0.") != "" || strings.TrimSpace(q) == ""
	}
	return false
}
