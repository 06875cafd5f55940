package apierror

import (
	"net/http"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/identity/siwe"
	"intents.internal/pkg/wire"
)

// externalErrors are those of sign-in with a wallet or a provider.
var externalErrors = []mapping{
	{identity.ErrWalletSite, Error{Status: http.StatusUnauthorized, Code: "UNAUTHORIZED_SIWE_MESSAGE_MISMATCH", Message: "The message is for another site, address or chain; have the wallet sign one that was made here."}},
	{identity.ErrWalletExpired, Error{Status: http.StatusUnauthorized, Code: "UNAUTHORIZED_SIWE_MESSAGE_EXPIRED", Message: "The message has expired or is older than ten minutes; have the wallet sign a new one."}},
	{identity.ErrWalletNotYetValid, Error{Status: http.StatusUnauthorized, Code: "UNAUTHORIZED_SIWE_MESSAGE_NOT_YET_VALID", Message: "The message is not valid yet; check the clock of the device that made it."}},
	{identity.ErrWalletNonce, Error{Status: http.StatusUnauthorized, Code: "UNAUTHORIZED_INVALID_OR_EXPIRED_NONCE", Message: "The nonce was used before or has expired; ask for a new one."}},
	{siwe.ErrSignature, Error{Status: http.StatusUnauthorized, Code: "UNAUTHORIZED_INVALID_SIWE_SIGNATURE", Message: "The message's address did not sign it: neither its key by personal_sign nor, as a smart account on the message's chain, its contract (ERC-1271, ERC-6492)."}},
	{identity.ErrWalletChain, Error{Status: http.StatusUnauthorized, Code: "UNAUTHORIZED_SIWE_CHAIN_WITHOUT_NODE", Message: "The key of the message's address did not sign it, and no node can be asked whether a smart account did: the operator must give the message's chain one in CORE_RPC_FILE."}},
	{identity.ErrOIDCOff, Error{
		Status: http.StatusNotFound, Code: wire.NotFound, Message: "Sign-in with OpenID Connect is not configured here.",
		Page: Page{Title: "No such page", Text: "There is nothing at this address."},
	}},
	{identity.ErrOIDCUnavailable, Error{
		Status: http.StatusServiceUnavailable, Code: wire.ServiceUnavailable, Message: "The OpenID Connect provider does not answer; try again in a moment.", RetryAfter: time.Second,
		Page: Page{Title: "Not available", Text: "The sign-in provider does not answer at this moment. Try again in a few seconds, or sign in another way."},
	}},
}
