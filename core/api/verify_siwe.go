package api

import (
	"errors"
	"net/http"
	"strings"

	"intents.internal/core/access"
	"intents.internal/core/access/siwe"
	"intents.internal/core/account"
	"intents.internal/pkg/wire"
)

// verifySIWE answers POST /auth/siwe/verify: it signs in the signer of the message. The wallet in the body must be the
// one in the message.
func (s *Server) verifySIWE(w http.ResponseWriter, r *http.Request) error {
	request, err := decode[struct {
		Message       string  `json:"message"`
		Signature     string  `json:"signature"`
		WalletAddress string  `json:"walletAddress"`
		ChainID       *uint64 `json:"chainId"`
	}](r)
	if err != nil {
		return err
	}
	identity, err := account.NewWalletIdentity(request.WalletAddress)
	if err != nil {
		return err
	}
	message, err := siwe.Parse(request.Message)
	if syntax, ok := errors.AsType[*siwe.SyntaxError](err); ok {
		return invalid(wire.Issue{Path: "/message", Message: "is no ERC-4361 message: " + syntax.Error()})
	}
	if err != nil {
		return err
	}
	if strings.ToLower(message.Address) != identity.Subject || request.ChainID != nil && *request.ChainID != message.ChainID {
		return access.ErrWalletSite
	}
	in, err := s.Access.SignInWithEthereum(r.Context(), s.visitor(r), request.Message, request.Signature)
	if err != nil {
		return err
	}
	s.cookie.SignIn(w, in)
	type user struct {
		ID            string `json:"id"`
		WalletAddress string `json:"walletAddress"`
		ChainID       uint64 `json:"chainId"`
	}
	return writeJSON(w, http.StatusOK, struct {
		Token   *string `json:"token"`
		Success bool    `json:"success"`
		User    user    `json:"user"`
	}{Success: true, User: user{ID: in.Account.ID.String(), WalletAddress: message.Address, ChainID: message.ChainID}})
}
