package wire

import "strings"

// Codings are the content codings that core's JSON and pages come in, the preferred one first.
var Codings = []string{"zstd", "gzip"}

// PreferredCoding is the first of Codings that an Accept-Encoding header names and does not weigh with 0; empty for none,
// which is the identity.
func PreferredCoding(acceptEncoding string) string {
	for _, coding := range Codings {
		if acceptsCoding(acceptEncoding, coding) {
			return coding
		}
	}
	return ""
}

func acceptsCoding(acceptEncoding, coding string) bool {
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

// MatchesETag compares an If-None-Match header with an entity tag weakly, as RFC 9110 section 13.1.2 asks.
func MatchesETag(ifNoneMatch, etag string) bool {
	weak := strings.TrimPrefix(etag, "W/")
	for tag := range strings.SplitSeq(ifNoneMatch, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || strings.TrimPrefix(tag, "W/") == weak {
			return true
		}
	}
	return false
}
