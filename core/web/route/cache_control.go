package route

import (
	"net/http"
	"slices"
)

const (
	headerCacheControl = "Cache-Control"
	// headerAPIKey is the credential of clients, which only gateways see.
	headerAPIKey = "x-api-key"
)

// CachePolicy is who may keep a response (RFC 9111). Without one nobody may: see ForbidCaching.
type CachePolicy struct {
	control string
	// byKey is set if the response depends on the API key. Its Vary keeps a cache that ignores private from serving it to others.
	byKey bool
}

var (
	// CachedByCaller is for a response that the client may keep for its key, and revalidates before each use.
	CachedByCaller = CachePolicy{control: "private, no-cache", byKey: true}
	// CachedByAll is for a document that is the same for everybody and changes only with the program.
	CachedByAll = CachePolicy{control: "public, max-age=300"}
)

// Allow lets caches keep the response under its entity tag.
func (p CachePolicy) Allow(header http.Header, etag string) {
	header.Set(headerCacheControl, p.control)
	header.Set("ETag", etag)
	if p.byKey && !slices.Contains(header["Vary"], headerAPIKey) {
		header.Add("Vary", headerAPIKey)
	}
}

// noStore is the value of every response that says nothing else; shared, so that it costs no allocation.
var noStore = []string{"no-store"}

// ForbidCaching forbids caches to keep the response, and takes back what allow has set.
func ForbidCaching(header http.Header) {
	header[headerCacheControl] = noStore
	if header["Etag"] == nil {
		return
	}
	delete(header, "Etag")
	header["Vary"] = slices.DeleteFunc(header["Vary"], func(name string) bool { return name == headerAPIKey })
}
