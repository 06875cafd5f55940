package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/core/transfer"
)

// search answers GET /console/search: it leads to the only intent or batch that is called so, to the list of several, or says that there is none.
func (c *console) search(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	sought := strings.TrimSpace(f.values["q"])
	if !f.ok() {
		sought = ""
	}
	target, err := c.find(r, user, sought)
	if err != nil {
		return err
	}
	if target != "" {
		redirect(w, r, target)
		return nil
	}
	return c.render(w, r, user, "search", view{Title: "Find a transfer", Section: "transfers", Form: f, Sought: sought, Body: whyNone(sought)})
}

// find returns the path of what is called so, empty for nothing.
func (c *console) find(r *http.Request, user currentUser, sought string) (string, error) {
	if sought == "" {
		return "", nil
	}
	accountID := user.principal.Account.ID
	name := sought
	if isHex(name) || isUUID(name) {
		name = strings.ToLower(name)
	}
	intent, err := c.Intents.Find(r.Context(), accountID, name)
	if err == nil {
		return transfersPath + "/" + intent.ID.String(), nil
	}
	if !errors.Is(err, intents.ErrTransferNotFound) {
		return "", err
	}
	if isUUID(name) {
		for _, environment := range environments {
			batch, _, err := c.Intents.FindBatch(r.Context(), accountID, environment, name)
			if err == nil {
				return "/console/batches/" + batch.ID.String(), nil
			}
			if !errors.Is(err, intents.ErrBatchNotFound) {
				return "", err
			}
		}
	}
	if _, isHash := transfer.ParseHash(name); isHash {
		if target, err := c.findAll(r, accountID, "hash", name, intents.TransferFilter{Hash: name}); target != "" || err != nil {
			return target, err
		}
	}
	if target, err := c.findAll(r, accountID, "reference", sought, intents.TransferFilter{Reference: sought}); target != "" || err != nil {
		return target, err
	}
	if labelled := (intents.TransferFilter{}); addLabel(&labelled, sought) {
		return c.findAll(r, accountID, "label", sought, labelled)
	}
	if account, isAccount := parseAccount(name); isAccount {
		return c.findAll(r, accountID, "account", name, intents.TransferFilter{Account: account})
	}
	return "", nil
}

// findAll returns the path of the only intent that a filter lets through, of the list with the filter if there are several, or nothing. The list
// goes on where the page ended before all intents were examined.
func (c *console) findAll(r *http.Request, accountID uuid.UUID, field, value string, filter intents.TransferFilter) (string, error) {
	filter.Limit = 2
	found, next, err := c.Transfers.TransferPage(r.Context(), accountID, filter)
	switch {
	case err != nil || len(found) == 0 && next == nil:
		return "", err
	case len(found) == 1 && next == nil:
		return transfersPath + "/" + found[0].ID.String(), nil
	default:
		return transfersPath + "?" + url.Values{field: {value}, "environment": {bothEnvironments}}.Encode(), nil
	}
}

func isHex(text string) bool { return strings.HasPrefix(text, "0x") || strings.HasPrefix(text, "0X") }

func isUUID(text string) bool {
	_, err := uuid.Parse(text)
	return err == nil && len(text) == 36 // Parse accepts other spellings too
}

// whyNone explains why nothing was found.
func whyNone(sought string) string {
	const digits = 64
	switch {
	case addLabel(&intents.TransferFilter{}, sought):
		return "No transfer of this account has this label or this reference. Enter the key and the whole value, with the same capital letters."
	case isHex(sought) && len(sought) == len("0x")+40:
		return "No transfer of this account is sent or received by this address. Addresses of tokens and contracts are not searched."
	case isHex(sought) && len(sought) != len("0x")+digits:
		return fmt.Sprintf("An order id or a transaction hash has 0x and 64 hexadecimal digits; what you entered has %d characters after 0x.", len(sought)-len("0x"))
	case isHex(sought):
		return "No transfer of this account has this order id or this transaction hash. The transfer may belong to another account: the current one is named at the top of the page."
	case isUUID(sought):
		return "No transfer and no batch of this account has this id. It may belong to another account: the current one is named at the top of the page."
	default:
		return "That is no id, order id or transaction hash, and no transfer of this account has it as its reference. Enter the whole reference, with the same capital letters."
	}
}
