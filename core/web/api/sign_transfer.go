package api

import (
	"encoding/hex"
	"net/http"
	"strings"

	"intents.internal/core/identity/identities"
	"intents.internal/core/transfer"
	"intents.internal/pkg/wire"
)

// The length of a signature in bytes: the compact one of a key (EIP-2098) is the shortest, and those of contracts have no length of their own.
const minSignature, maxSignature = 64, 4 << 10

// signTransfer is the change of POST /v2/transfers/{id}/signature: it adds the signature of the intent's typed data, and hands the order to its solver
// where that was asked for.
func (s *Server) signTransfer(r *http.Request, intent *transfer.Intent) (*transfer.Intent, error) {
	request, err := decode[struct {
		Signature *string `json:"signature"`
	}](r)
	if err != nil {
		return nil, err
	}
	if request.Signature == nil {
		return nil, invalid(wire.Issue{Path: "/signature", Message: "is required"})
	}
	digits, prefixed := strings.CutPrefix(*request.Signature, "0x")
	signature, err := hex.DecodeString(digits)
	if err != nil || !prefixed || len(signature) < minSignature || len(signature) > maxSignature {
		return nil, invalid(wire.Issue{Path: "/signature", Message: "must be a signature: 0x and 64 to 4,096 bytes in hexadecimal digits"})
	}
	return s.Quotes.Sign(r.Context(), identities.OfKey(intent.AccountID), intent, signature)
}
