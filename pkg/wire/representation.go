package wire

import "strings"

// Codings are the content codings of core's JSON and pages, the preferred one first.
var Codings = []string{"zstd", "gzip"}

// PreferredCoding returns the first of Codings that an Accept-Encoding header accepts with a nonzero weight; empty for none,
// which is the identity coding.
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

// MatchesETag compares an If-None-Match header with an entity tag by weak comparison (RFC 9110 section 13.1.2).
func MatchesETag(ifNoneMatch, etag string) bool {
	weak := strings.TrimPrefix(etag, "W/")
	for tag := range strings.SplitSeq(ifNoneMatch, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || strings.TrimPrefix(tag, "W/") == weak {
			return true
		}
	}
	return false
}
