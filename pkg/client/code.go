package client

// Code tells errors of the service apart: errors.Is(err, client.CodeNoQuote). A newer service may have codes that are not listed here.
type Code string

func (c Code) Error() string { return string(c) }

// Any operation.
const (
	CodeInvalidAPIKey                    Code = "INVALID_API_KEY"
	CodeInsufficientScope                Code = "INSUFFICIENT_SCOPE"
	CodeNetworkNotAllowed                Code = "NETWORK_NOT_ALLOWED"
	CodeInvalidClientToken               Code = "INVALID_CLIENT_TOKEN"
	CodeClientTokenNotAllowed            Code = "CLIENT_TOKEN_NOT_ALLOWED"
	CodeOriginNotAllowed                 Code = "ORIGIN_NOT_ALLOWED"
	CodeChainNotAllowedForKeyEnvironment Code = "CHAIN_NOT_ALLOWED_FOR_KEY_ENVIRONMENT"
	CodeRateLimited                      Code = "RATE_LIMITED"
	CodeTooManyPolls                     Code = "TOO_MANY_POLLS"
	CodeTooManyReplays                   Code = "TOO_MANY_REPLAYS"
	CodeCursorExpired                    Code = "CURSOR_EXPIRED"
	CodeInvalidRequest                   Code = "INVALID_REQUEST"
	CodePayloadTooLarge                  Code = "PAYLOAD_TOO_LARGE"
	CodeUnsupportedMediaType             Code = "UNSUPPORTED_MEDIA_TYPE"
	CodeNotFound                         Code = "NOT_FOUND"
	CodeMethodNotAllowed                 Code = "METHOD_NOT_ALLOWED"
	CodeRequestTimeout                   Code = "REQUEST_TIMEOUT"
	CodeExpectationFailed                Code = "EXPECTATION_FAILED"
	CodeHeadersTooLarge                  Code = "HEADERS_TOO_LARGE"
	CodeHTTPVersionNotSupported          Code = "HTTP_VERSION_NOT_SUPPORTED"
	CodeServiceUnavailable               Code = "SERVICE_UNAVAILABLE"
	CodeChainNotWatched                  Code = "CHAIN_NOT_WATCHED"
	CodeUpstreamTimeout                  Code = "UPSTREAM_TIMEOUT"
	CodeOutcomeUnknown                   Code = "OUTCOME_UNKNOWN"
	CodeInternalError                    Code = "INTERNAL_ERROR"
	CodeTokenRegistryServiceError        Code = "TokenRegistryServiceError"
	CodeTransferServiceError             Code = "TransferServiceError"
	CodeWebhookServiceError              Code = "WebhookServiceError"
)

// Intents and quotes.
const (
	CodeUnsupportedChain            Code = "UNSUPPORTED_CHAIN"
	CodeChainMismatch               Code = "CHAIN_MISMATCH"
	CodeUnknownToken                Code = "UNKNOWN_TOKEN"
	CodeInvalidAmount               Code = "INVALID_AMOUNT"
	CodeInvalidRecipient            Code = "INVALID_RECIPIENT"
	CodeSelfTransfer                Code = "SELF_TRANSFER"
	CodeDestinationAmountNotAllowed Code = "DESTINATION_AMOUNT_NOT_ALLOWED"
	CodeDestinationAmountRequired   Code = "DESTINATION_AMOUNT_REQUIRED"
	CodeInvalidDeadline             Code = "INVALID_DEADLINE"
	CodeSettlerNotConfigured        Code = "SETTLER_NOT_CONFIGURED"
	CodeNativeNotSupported          Code = "NATIVE_NOT_SUPPORTED"
	CodeRouteUnsupported            Code = "ROUTE_UNSUPPORTED"
	CodeAmountRequired              Code = "AMOUNT_REQUIRED"
	CodeAmountsConflict             Code = "AMOUNTS_CONFLICT"
	CodeQuotesNotConfigured         Code = "QUOTES_NOT_CONFIGURED"
	CodeQuotesUnavailable           Code = "QUOTES_UNAVAILABLE"
	CodeNoQuote                     Code = "NO_QUOTE"
	CodeQuoteNotFound               Code = "QUOTE_NOT_FOUND"
	CodeQuoteUsed                   Code = "QUOTE_USED"
	CodeQuoteExpired                Code = "QUOTE_EXPIRED"
	CodeQuoteMismatch               Code = "QUOTE_MISMATCH"
	CodeSimulationNotSupported      Code = "SIMULATION_NOT_SUPPORTED"
	CodeIdempotencyKeyReused        Code = "IDEMPOTENCY_KEY_REUSED"
	CodeIdempotencyKeyRequired      Code = "IDEMPOTENCY_KEY_REQUIRED"
	CodeStatusConflict              Code = "STATUS_CONFLICT"
	CodeNotRefundable               Code = "NOT_REFUNDABLE"
	CodeSigningNotSupported         Code = "SIGNING_NOT_SUPPORTED"
	CodeSubmitNotSupported          Code = "SUBMIT_NOT_SUPPORTED"
	CodeSignatureInvalid            Code = "SIGNATURE_INVALID"
	CodeAccountNotDeployed          Code = "ACCOUNT_NOT_DEPLOYED"
	CodeNotSigned                   Code = "NOT_SIGNED"
	CodeAddressNotAllowed           Code = "ADDRESS_NOT_ALLOWED"
	CodeBatchTooLarge               Code = "BATCH_TOO_LARGE"
	CodeBatchRejected               Code = "BATCH_REJECTED"
	CodeBatchNotUniform             Code = "BATCH_NOT_UNIFORM"
	CodeEventNotFound               Code = "EVENT_NOT_FOUND"
	CodeBatchNotFound               Code = "BATCH_NOT_FOUND"
)

// Webhooks.
const (
	CodeTooManyWebhooks       Code = "TOO_MANY_WEBHOOKS"
	CodeWebhookDisabled       Code = "WEBHOOK_DISABLED"
	CodeURLNotAllowed         Code = "URL_NOT_ALLOWED"
	CodeWebhooksNotConfigured Code = "WEBHOOKS_NOT_CONFIGURED"
)
