package edge

import (
	"bytes"
	"errors"

	"github.com/valyala/fasthttp"

	"intents.internal/gateway/keys"
	"intents.internal/gateway/limit"
	"intents.internal/pkg/clienttoken"
	"intents.internal/pkg/tokenbucket"
	"intents.internal/pkg/wire"
)

var (
	malformedToken = badToken(outcomeMalformedToken, "This client token is malformed or was not made by this service. "+tokenRemedy)
	expiredToken   = badToken(outcomeExpiredToken, "This client token has expired. "+tokenRemedy)
	// endedToken is the reply to a token whose key is unknown, disabled, expired or without an account.
	endedToken   = badToken(outcomeRefusedKey, "This client token has ended with the API key that made it. "+tokenRemedy)
	tokenRefused = newReply(fasthttp.StatusForbidden, outcomeTokenRefused, wire.ClientTokenNotAllowed,
		"A client token reads, preflights and reports one transfer, which is named by its id. Have your server do this with its API key.")
)

const tokenRemedy = "Get another one from your server."

// badToken returns the 401 for a token that cannot be used (RFC 6750 section 3).
func badToken(o outcome, message string) *reply {
	return newReply(fasthttp.StatusUnauthorized, o, wire.InvalidClientToken, message, fasthttp.HeaderWWWAuthenticate, `Bearer error="invalid_token"`)
}

const bearerScheme = "Bearer "

// clientTokenOf returns the client token in an Authorization field, whose scheme may be in any case (RFC 9110 section 11.1). The token need not be
// well formed.
func clientTokenOf(credentials []byte) (token []byte, given bool) {
	if len(credentials) < len(bearerScheme) || !bytes.EqualFold(credentials[:len(bearerScheme)], []byte(bearerScheme)) {
		return nil, false
	}
	token = trimSpace(credentials[len(bearerScheme):])
	return token, bytes.HasPrefix(token, []byte(clienttoken.Prefix))
}

// verifyClientToken sets the verdict on the key of the request's client token, and checks that the token allows the request. The key's
// networks do not restrict the token, whose bearer is elsewhere. A request without a token is answered as one without a key.
func (e *Edge) verifyClientToken(x *exchange) *reply {
	header := &x.ctx.Request.Header
	if x.route.isPreflight(header) {
		return x.route.preflight
	}
	token, given := clientTokenOf(header.Peek(fasthttp.HeaderAuthorization))
	if !given {
		return noKey
	}
	claims, err := e.tokens.Verify(token)
	switch {
	case err != nil:
		x.allowAnyOrigin()
		return malformedToken
	case claims.Expired(x.now):
		x.allowAnyOrigin()
		return expiredToken
	case !x.route.takesToken(header.Method()) || !claims.IsFor(transferID(x.path())):
		x.allowAnyOrigin()
		return tokenRefused
	}
	err = e.lookUpKey(x, claims.Key)
	switch {
	case errors.Is(err, keys.ErrUnknown), errors.Is(err, keys.ErrRefused):
		x.allowAnyOrigin()
		return endedToken
	case err != nil:
		return keysUnavailable
	}
	x.token = &claims
	if refusal := x.checkOrigin(); refusal != nil {
		return refusal
	}
	return checkScope(x)
}

// transferID returns the id in the path of a transfer.
func transferID(path []byte) []byte {
	id, _, _ := bytes.Cut(path[len(transfersPrefix):], []byte("/"))
	return id
}

// keyLimit returns the bucket that the request takes a token from besides its account's, and what remembers the bucket's refusals. All client
// tokens of one key and intent share a bucket, so that no page uses up the key's.
func (x *exchange) keyLimit() (tokenbucket.Bucket, *limit.Refusals) {
	l := x.verdict.Limit()
	if x.token == nil {
		return l, &x.verdict.Refusals
	}
	l.Name = tokenbucket.ClientTokenName(l.Name, x.token.TransferID.String())
	return l, &limit.Refusals{}
}
