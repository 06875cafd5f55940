package provider

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"intents.internal/core/outbound"
	"intents.internal/core/quotes/quote"
	"intents.internal/pkg/transport"
)

var errNoHTTP = errors.New("the connection ended, or the answer is not HTTP")

// noAnswer is the *Error of a request without an answer. Its cause is in words of our own where those of net/http quote what a provider sent,
// which can be our headers.
func noAnswer(caller context.Context, err error) error {
	var timeout net.Error
	switch {
	case caller.Err() != nil:
		return &Error{Code: quote.ProviderTimeout, Cause: caller.Err(), abandoned: true}
	case errors.Is(err, transport.ErrBodyTooLarge):
		return &Error{Code: quote.ProviderInvalid, Cause: fmt.Errorf("the answer is over %d bytes", maxAnswer)}
	case errors.Is(err, outbound.ErrAddressNotAllowed):
		return &Error{Code: quote.ProviderUnavailable, Cause: outbound.ErrAddressNotAllowed}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return &Error{Code: quote.ProviderTimeout, Cause: context.DeadlineExceeded}
	}
	if lookup, ok := errors.AsType[*net.DNSError](err); ok {
		return &Error{Code: quote.ProviderUnavailable, Cause: lookup}
	}
	if certificate, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return &Error{Code: quote.ProviderUnavailable, Cause: certificate}
	}
	if operation, ok := errors.AsType[*net.OpError](err); ok {
		return &Error{Code: quote.ProviderUnavailable, Cause: operation}
	}
	return &Error{Code: quote.ProviderUnavailable, Cause: errNoHTTP}
}
