package auth

import (
	"net/http"

	"intents.internal/core/identity"
	"intents.internal/core/web/route"
)

// linkSIWE answers POST /auth/siwe/link: it adds the wallet that signed the message as a way to sign in. better-auth has no route
// for this. The body is that of siwe/verify, with the password if the session is not fresh.
func (s *Server) linkSIWE(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		Message       string                 `json:"message"`
		Signature     string                 `json:"signature"`
		WalletAddress string                 `json:"walletAddress"`
		ChainID       route.Nullable[uint64] `json:"chainId"`
		Password      string                 `json:"password"`
	}](r)
	if err != nil {
		return err
	}
	if _, err := readWalletMessage(request.Message, request.WalletAddress, request.ChainID.Value); err != nil {
		return err
	}
	_, err = s.Identity.Persons.LinkWallet(r.Context(), s.confirming(r, request.Password), identity.PrincipalOf(r), request.Message, request.Signature)
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, statusJSON)
}
