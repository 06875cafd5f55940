package auth

import (
	"fmt"
	"net/http"

	"intents.internal/core/identity/account"
	"intents.internal/core/web/route"
	"intents.internal/pkg/wire"
)

// createNonce answers POST /auth/siwe/nonce with a nonce for one Sign-in with Ethereum message. It is not bound to the wallet in
// the body, because the message names the wallet.
func (s *Server) createNonce(w http.ResponseWriter, r *http.Request) error {
	request, err := route.Decode[struct {
		WalletAddress string                 `json:"walletAddress"`
		ChainID       route.Nullable[uint64] `json:"chainId"`
	}](r)
	if err != nil {
		return err
	}
	if err := checkChainID(request.ChainID.Value); err != nil {
		return err
	}
	if _, err := account.NewWalletIdentity(request.WalletAddress); err != nil {
		return err
	}
	nonce, err := s.Identity.Persons.WalletNonce(r.Context(), s.client(r))
	if err != nil {
		return err
	}
	return route.WriteJSON(w, http.StatusOK, map[string]string{"nonce": nonce})
}

// maxChainID is the largest integer that every JSON parser keeps exact.
const maxChainID = 1<<53 - 1

// checkChainID checks the EIP-155 chain id of a request, nil for none.
func checkChainID(id *uint64) error {
	if id != nil && (*id < 1 || *id > maxChainID) {
		return route.Invalid(wire.Issue{Path: "/chainId", Message: fmt.Sprintf("must be an EIP-155 chain id, 1 to %d", maxChainID)})
	}
	return nil
}
