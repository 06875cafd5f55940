package api

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// negotiate returns the offered media type that the client prefers (RFC 9110 section 12.5.1): the first of equals, and the first of all if
// the client accepts none.
func negotiate(r *http.Request, offers ...string) string {
	accept := strings.Join(r.Header.Values("Accept"), ",")
	best, most := offers[0], 0.0
	for _, offer := range offers {
		if weight := weightOf(accept, offer); weight > most {
			best, most = offer, weight
		}
	}
	return best
}

// weightOf returns the weight of a media type, which is that of the most specific range that has it. A range that cannot be read counts for
// nothing.
func weightOf(accept, offer string) (weight float64) {
	family, _, _ := strings.Cut(offer, "/")
	specificity := 0
	for field := range strings.SplitSeq(accept, ",") {
		media, parameters, err := mime.ParseMediaType(field)
		if err != nil {
			continue
		}
		found := 0
		switch media {
		case offer:
			found = 3
		case family + "/*":
			found = 2
		case "*/*":
			found = 1
		}
		if found <= specificity {
			continue
		}
		q, err := strconv.ParseFloat(parameters["q"], 64)
		if err != nil {
			q = 1
		}
		specificity, weight = found, q
	}
	return weight
}
