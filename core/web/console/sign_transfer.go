package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"intents.internal/core/identity"
	"intents.internal/core/intents"
	"intents.internal/core/signature"
	"intents.internal/core/transfer"
)

var errNoSignature = pageError{
	status: http.StatusBadRequest, Field: "signature", Text: "A signature is 0x and at least 128 hexadecimal digits.", correctable: true,
}

// signingView is an intent that is executed by its user's signature.
type signingView struct {
	*transfer.Signature
	// Sign is nil if the intent must not be signed now.
	Sign *signView
	// PermitData is the permit that grants the allowance (EIP-2612), as the parameter of eth_signTypedData_v4; empty for none.
	PermitData string
	// Relayable means that the page of the relay is offered, and Revocable that of the revocation.
	Relayable, Revocable bool
}

// signView is typed data that a browser wallet can sign.
type signView struct {
	// Params are the parameters of the script sign.js, as JSON.
	Params string
	// TypedData is the parameter of eth_signTypedData_v4, as JSON.
	TypedData string
	Chain     string
	// Watched is that of sendView.
	Watched bool
}

// signingView returns nil for an intent whose user sends a transaction. It has no signature, so every member may see it.
func (c *console) signingView(record *intents.Record) (*signingView, error) {
	s := record.Signature
	if s == nil {
		return nil, nil
	}
	v := &signingView{
		Signature: s, Revocable: s.Revoke != nil && !record.Screened,
		Relayable: record.Intent.Status == transfer.Created && !s.SignedAt.IsZero() && !record.Screened,
	}
	if s.TypedData == nil {
		return v, nil
	}
	if s.Permit != nil {
		v.PermitData = string(transfer.AppendTypedData(nil, s.Permit))
	}
	var err error
	v.Sign, err = c.signView(record.Intent, s.TypedData, s.Allowance)
	return v, err
}

// signView is what the intent's user signs, once the allowance is in place where there is one.
func (c *console) signView(intent *transfer.Intent, typed *transfer.TypedData, needed *transfer.Allowance) (*signView, error) {
	chain, user := intent.Source.Account.Chain, intent.Source.Account.Address
	var all []transfer.Allowance
	var approvals []transfer.Call
	if needed != nil {
		all, approvals = append(all, *needed), append(approvals, needed.Approve)
	}
	allowances, err := allowanceParameters(all)
	if err != nil {
		return nil, fmt.Errorf("write the allowance of transfer %s: %w", intent.ID, err)
	}
	v := &signView{TypedData: string(transfer.AppendTypedData(nil, typed)), Chain: c.chainName(chain), Watched: c.Intents.CanPreflight(chain)}
	params, err := json.Marshal(struct {
		ID         string               `json:"id"`
		Chain      string               `json:"chain"`
		AddChain   *addChainParameter   `json:"addChain"`
		TypedData  string               `json:"typedData"`
		Calls      json.RawMessage      `json:"calls"`
		Allowances []allowanceParameter `json:"allowances"`
	}{intent.ID.String(), v.Chain, c.addChainParameter(chain), v.TypedData, transfer.AppendSendCalls(nil, chain, user, approvals), allowances})
	if err != nil {
		return nil, fmt.Errorf("write the typed data of transfer %s: %w", intent.ID, err)
	}
	v.Params = string(params)
	return v, nil
}

// signTransfer answers POST /console/transfers/{id}/signature: it adds the signature of the intent's typed data. It is idempotent, so the form needs
// no token.
func (c *console) signTransfer(_ http.ResponseWriter, r *http.Request, user currentUser, f *form) (string, error) {
	intent, err := c.transferOf(r, user)
	if err != nil {
		return "", err
	}
	given, ok := signature.Parse(strings.TrimSpace(f.values["signature"]), signature.MinLength, signature.MaxLength)
	if !ok {
		return "", errNoSignature
	}
	_, err = c.Intents.Sign(r.Context(), c.Identity.Grant(user.principal, identity.Develop), intent, given)
	return parentPath(r.URL.Path) + "?done=signed", err
}

// showRelay answers GET /console/transfers/{id}/relay with the transaction that executes a signed intent, which any account can send. It has the
// signature, with which anybody can do the same: the page is not for viewers.
func (c *console) showRelay(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	intent, err := c.transferOf(r, user)
	if err != nil {
		return err
	}
	tx, err := c.Intents.Relay(r.Context(), intent)
	if err != nil {
		return err
	}
	sending, err := c.sendView(intent, tx)
	if err != nil {
		return err
	}
	source := c.legView(intent.Source)
	return c.render(w, r, user, "relay", view{Title: "Relay", Section: "transfers", Of: intent.Environment, Form: f, Body: map[string]any{
		"Intent": intent, "Title": titleOf(intent, source), "Source": source, "Send": sending,
	}})
}

// showRevocation answers GET /console/transfers/{id}/revoke with what makes the signature of a cancelled intent worthless on chain.
func (c *console) showRevocation(w http.ResponseWriter, r *http.Request, user currentUser) error {
	intent, err := c.transferOf(r, user)
	if err != nil {
		return err
	}
	record, err := c.Intents.Record(r.Context(), intent)
	if err != nil {
		return err
	}
	if record.Signature == nil || record.Signature.Revoke == nil {
		return errNothingToRevoke
	}
	source, revoke := c.legView(intent.Source), record.Signature.Revoke
	sending, err := c.sendView(intent, revoke.Tx)
	if err != nil {
		return err
	}
	body := map[string]any{"Intent": intent, "Title": titleOf(intent, source), "Source": source, "Send": sending, "Sign": (*signView)(nil)}
	if sending != nil {
		sending.Purpose = "revocation"
	}
	if revoke.TypedData != nil {
		if body["Sign"], err = c.signView(intent, revoke.TypedData, nil); err != nil {
			return err
		}
	}
	return c.render(w, r, user, "revoke", view{Title: "Revoke the signature", Section: "transfers", Of: intent.Environment, Body: body})
}

var errNothingToRevoke = pageError{
	status: http.StatusConflict, Title: "Nothing to revoke", Text: "The intent is not cancelled, or nobody has signed it.",
}
