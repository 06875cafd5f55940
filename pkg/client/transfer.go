package client

import "time"

// TransferType is what an intent does: the same token on the same chain, another token, or another chain.
type TransferType string

// Types of intents.
const (
	TypeTransfer TransferType = "transfer"
	TypeSwap     TransferType = "swap"
	TypeBridge   TransferType = "bridge"
)

// TransferStatus is where an intent stands. It may go back while the intent is not final, because chains reorganize.
type TransferStatus string

// Statuses.
const (
	StatusCreated   TransferStatus = "created"
	StatusSubmitted TransferStatus = "submitted"
	StatusConfirmed TransferStatus = "confirmed"
	StatusFilled    TransferStatus = "filled"
	StatusRefunded  TransferStatus = "refunded"
	StatusFailed    TransferStatus = "failed"
	StatusExpired   TransferStatus = "expired"
	StatusCancelled TransferStatus = "cancelled"
)

// Failure is why an intent failed.
type Failure string

// Failures.
const (
	FailureTxReverted      Failure = "TX_REVERTED"
	FailureTxReplaced      Failure = "TX_REPLACED"
	FailureTxMismatch      Failure = "TX_MISMATCH"
	FailureOrderIDMismatch Failure = "ORDER_ID_MISMATCH"
)

// FailureReason explains a failure.
type FailureReason struct {
	// Message is a sentence for people.
	Message string `json:"message"`
	// Hash is the transaction that failed, and BlockNumber its block, nil for one that was replaced.
	Hash        string `json:"hash"`
	BlockNumber *int64 `json:"blockNumber"`
	// Expected is what was to be there, and Found what was there instead, such as an order id, a hash or an amount; nil for none.
	Expected *string `json:"expected"`
	Found    *string `json:"found"`
}

// CreateTransfer asks for an intent: Source and Destination, or QuoteID, or both, which must then agree.
type CreateTransfer struct {
	Source      *SourceRequest      `json:"source,omitempty"`
	Destination *DestinationRequest `json:"destination,omitempty"`
	// QuoteID is a quote to make the intent of. A quote makes one intent.
	QuoteID string `json:"quoteId,omitempty"`
	// Deadline is the time until which it may be sent, by default in an hour, or the quote's.
	Deadline time.Time `json:"deadline,omitzero"`
	// Signing asks for an intent that its user signs in place of sending a transaction. Empty is one that the user sends.
	Signing SigningScheme `json:"signing,omitempty"`
	// Submit has the service hand the signed order to the solver of the quote, whose provider must take orders. It needs QuoteID and Signing.
	Submit bool `json:"submit,omitempty"`
	// Reference is a text of the caller's by which intents can be listed.
	Reference string `json:"reference,omitempty"`
	// Labels are the caller's own, up to 20: keys of 1 to 40 ASCII letters, digits, dots, hyphens and underscores, values of 1 to 200 characters.
	Labels map[string]string `json:"labels,omitempty"`
	// IdempotencyKey names the intent among the account's, so that asking again does not make another. Empty lets the client make one, which
	// covers the tries of one call; give your own to cover a restart of your program too.
	IdempotencyKey string `json:"-"`
}

// SourceRequest is what is sent. Amount is left out only in a quote of an exact output.
type SourceRequest struct {
	Account string `json:"account"` // CAIP-10
	Token   string `json:"token"`   // CAIP-10
	Amount  Amount `json:"amount,omitempty"`
}

// DestinationRequest is what arrives. Of a transfer it needs the account alone.
type DestinationRequest struct {
	Account string `json:"account"`
	Token   string `json:"token,omitempty"`
	Amount  Amount `json:"amount,omitempty"`
}

// Leg is a side of an intent or quote. Of a destination the amount is the least that arrives.
type Leg struct {
	Account string `json:"account"`
	Token   string `json:"token"`
	Amount  Amount `json:"amount"`
}

// Transfer is an intent.
type Transfer struct {
	ID        string           `json:"id"`
	Type      TransferType     `json:"type"`
	Status    TransferStatus   `json:"status"`
	OrderID   string           `json:"orderId"`
	CreatedAt time.Time        `json:"createdAt"`
	UpdatedAt time.Time        `json:"updatedAt"`
	Metadata  TransferMetadata `json:"metadata"`
	// Environment is that of the source chain and of the key that made it.
	Environment Environment `json:"environment"`
	Source      Leg         `json:"source"`
	// Destination is who gets what; the amount of a swap or bridge is the least.
	Destination Leg     `json:"destination"`
	Reference   *string `json:"reference"`
	// Labels is empty for none.
	Labels map[string]string `json:"labels"`
	// BatchID is the batch that it was made in, nil for none.
	BatchID *string `json:"batchId"`
	// Ended is set once no further step is expected: the intent is final, or failed, or expired.
	Ended bool `json:"ended"`
	// Simulated is set where Transfers.Simulate has set the status: the intent is never sent.
	Simulated bool `json:"simulated,omitzero"`
	// Final is set once nobody need do anything more: a confirmed transfer, a filled or refunded swap or bridge, a cancelled intent.
	Final   bool     `json:"final"`
	Failure *Failure `json:"failure"`
	// FailureReason is Failure in words, nil where that is.
	FailureReason *FailureReason `json:"failureReason"`
	Deadline      time.Time      `json:"deadline"`
	// Quote is the quote of which the intent was made.
	Quote *UsedQuote `json:"quote"`
	// Order is the order of the Open Intents Framework, nil of an intent whose scheme is no longer supported.
	Order *Order `json:"order"`
	// Tx is the transaction to sign, nil once it cannot be sent any more, and where Signing is set.
	Tx *Transaction `json:"tx"`
	// Signing is what the user signs in place of a transaction, nil where the user sends one.
	Signing       *Signing              `json:"signing"`
	Confirmations *Confirmations        `json:"confirmations"`
	Transactions  []ObservedTransaction `json:"transactions"`
	// Refundable is set while Transfers.Refund has the transaction that pays the sender back.
	Refundable   bool          `json:"refundable"`
	Verification *Verification `json:"verification"`
	// Screened is set while the service does not serve an account of the intent: Tx is nil.
	Screened bool `json:"screened"`
	// Watched is set while the service follows both chains of the intent. Its status stands still while it is not.
	Watched bool `json:"watched"`
}

// Verification says why a transaction was not checked.
type Verification string

// VerificationUnsupported is a transaction of a scheme that is no longer supported.
const VerificationUnsupported Verification = "unsupported"

// TransferMetadata is the source chain, and the hash of the transaction that carries the intent out, empty before one is known.
type TransferMetadata struct {
	ChainID string `json:"chainId"`
	Hash    string `json:"hash,omitempty"`
}

// UsedQuote is the quote of which an intent was made.
type UsedQuote struct {
	ID        string    `json:"id"`
	Provider  string    `json:"provider"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// Confirmations are the blocks on a transaction.
type Confirmations struct {
	Have      int  `json:"have"`
	Need      int  `json:"need"`
	Finalized bool `json:"finalized"`
}

// ObservedTransaction is a transaction on a chain that belongs to an intent.
type ObservedTransaction struct {
	Role        TransactionRole  `json:"role"`
	ChainID     string           `json:"chainId"`
	Hash        string           `json:"hash"`
	State       TransactionState `json:"state"`
	BlockNumber *int64           `json:"blockNumber"`
	SeenAt      time.Time        `json:"seenAt"`
	// ExplorerURL is the transaction's page at its chain's explorer, nil for none.
	ExplorerURL *string `json:"explorerUrl"`
}

// TransactionRole is what a transaction does for an intent.
type TransactionRole string

// Roles of transactions.
const (
	RoleSend   TransactionRole = "send"
	RoleOpen   TransactionRole = "open"
	RoleFill   TransactionRole = "fill"
	RoleRefund TransactionRole = "refund"
)

// TransactionState is what became of a transaction.
type TransactionState string

// States of transactions.
const (
	StatePending   TransactionState = "pending"
	StateMined     TransactionState = "mined"
	StateReverted  TransactionState = "reverted"
	StateReplaced  TransactionState = "replaced"
	StateMismatch  TransactionState = "mismatch"
	StateFinalized TransactionState = "finalized"
)

// TransferSummary is an intent in a list.
type TransferSummary struct {
	ID          string           `json:"id"`
	Type        TransferType     `json:"type"`
	Status      TransferStatus   `json:"status"`
	OrderID     string           `json:"orderId"`
	CreatedAt   time.Time        `json:"createdAt"`
	UpdatedAt   time.Time        `json:"updatedAt"`
	Metadata    TransferMetadata `json:"metadata"`
	Environment Environment      `json:"environment"`
	Source      Leg              `json:"source"`
	// Destination is as in Transfer.
	Destination Leg       `json:"destination"`
	Deadline    time.Time `json:"deadline"`
	Reference   *string   `json:"reference"`
	// Labels is empty for none.
	Labels map[string]string `json:"labels"`
	// Signing is how the user authorizes it by a signature, nil where the user sends a transaction.
	Signing *SigningScheme `json:"signing"`
	// BatchID and Ended are as in Transfer.
	BatchID *string `json:"batchId"`
	Ended   bool    `json:"ended"`
}
