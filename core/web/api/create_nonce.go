package api

import (
	"net/http"

	"intents.internal/core/identity/account"
	"intents.internal/pkg/wire"
)

// createNonce answers POST /auth/siwe/nonce with a nonce for one Sign-in with Ethereum message. It is not bound to the wallet in
// the body, because the message names the wallet.
func (s *Server) createNonce(w http.ResponseWriter, r *http.Request) error {
	request, err := decode[struct {
		WalletAddress string  `json:"walletAddress"`
		ChainID       *uint64 `json:"chainId"`
	}](r)
	if err != nil {
		return err
	}
	if _, err := account.NewWalletIdentity(request.WalletAddress); err != nil {
		return err
	}
	if request.ChainID != nil && *request.ChainID == 0 {
		return errChainID
	}
	nonce, err := s.Identity.WalletNonce(r.Context(), s.client(r))
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]string{"nonce": nonce})
}

var errChainID = invalid(wire.Issue{Path: "/chainId", Message: "must be an EIP-155 chain id, such as 1"})
