package console

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"intents.internal/core/identity"
	"intents.internal/pkg/caip"
)

// startOpenIDConnect answers GET /console/sign-in/openid-connect with a redirect to the provider. It is a GET because browsers
// also apply form-action to the redirects of a form.
func (c *console) startOpenIDConnect(w http.ResponseWriter, r *http.Request, _ currentUser, f *form) error {
	target, flow, err := c.Identity.Persons.StartOIDC(r.Context(), c.client(r))
	if err != nil {
		return err
	}
	identity.NewFlowCookie(c.PublicURL).Add(w, r, flow, safeNext(f.values["next"]))
	redirect(w, r, target)
	return nil
}

// messageTTL is how long a wallet has to sign.
const messageTTL = 5 * time.Minute

var errWallet = pageError{
	status: http.StatusBadRequest, Title: "Not a wallet", Text: "The request does not name a wallet's address and chain.",
}

// writeWalletMessage answers POST /console/sign-in/wallet-message with the EIP-4361 message that the wallet of this address must
// sign. The server writes it because wallets return addresses in any spelling and the message needs the EIP-55 checksum, for
// which browsers lack the hash function.
func (c *console) writeWalletMessage(w http.ResponseWriter, r *http.Request, _ currentUser) error {
	f, err := readForm(r, "address", "chain", "purpose")
	if err != nil {
		return err
	}
	address, addressErr := caip.ParseAddress(f.values["address"])
	chain, chainErr := caip.ParseChainID(caip.EIP155 + ":" + f.values["chain"])
	if addressErr != nil || chainErr != nil {
		return errWallet
	}
	nonce, err := c.Identity.Persons.WalletNonce(r.Context(), c.client(r))
	if err != nil {
		return err
	}
	statement := "Sign in to the console of the Transfer Intent Service."
	if f.is("purpose", "link") {
		statement = "Link this wallet to your account at the Transfer Intent Service, which it can sign in to from then on."
	}
	now := c.Now().UTC()
	_, domain, _ := strings.Cut(c.PublicURL, "://")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintf(w, "%s wants you to sign in with your Ethereum account:\n%s\n\n%s\n\n"+
		"URI: %s\nVersion: 1\nChain ID: %s\nNonce: %s\nIssued At: %s\nExpiration Time: %s",
		domain, address, statement, c.PublicURL, chain.Reference, nonce,
		now.Format(time.RFC3339), now.Add(messageTTL).Format(time.RFC3339))
	return nil
}
