package console

import (
	"net/http"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
)

// pageSize is the number of rows on one page of a list.
const pageSize = 25

// actions are the display names of the audit log's actions.
var actions = map[account.Action]string{
	account.SignedUp:             "Signed up",
	account.SignedIn:             "Signed in",
	account.SignInFailed:         "Sign-in failed",
	account.SignedOut:            "Signed out",
	account.ResetRequested:       "Link to a new password asked for",
	account.AccountSwitched:      "Began to act on the account",
	account.SessionsRevoked:      "Sessions ended",
	account.PasswordChanged:      "Password changed",
	account.PasswordReset:        "Password reset",
	account.ResetLinkMade:        "Link to a new password made",
	account.IdentityLinked:       "Way to sign in linked",
	account.IdentityUnlinked:     "Way to sign in unlinked",
	account.PasskeyAdded:         "Passkey added",
	account.PasskeyDeleted:       "Passkey removed",
	account.PasskeyRefused:       "Passkey refused: its count fell, as that of a copy does",
	account.PasskeysRemoved:      "All passkeys removed, sessions ended",
	account.AccountDisabled:      "Account disabled",
	account.AccountEnabled:       "Account enabled",
	account.AccountDeleted:       "Account deleted",
	account.AccountLimitChanged:  "Limit of the account changed",
	account.KeyCreated:           "Key created",
	account.KeyUpdated:           "Key changed",
	account.KeyRotated:           "Key rotated",
	account.KeyDeleted:           "Key deleted",
	account.EmailVerified:        "Address verified",
	account.EmailChangeRequested: "Change of the address asked for",
	account.EmailChanged:         "Address changed",
	account.EmailLost:            "Address lost to its owner",
	account.AccountShared:        "Shared account made",
	account.AccountRenamed:       "Shared account renamed",
	account.MemberInvited:        "Member invited",
	account.InvitationCanceled:   "Invitation canceled",
	account.InvitationDeclined:   "Invitation declined",
	account.MemberJoined:         "Member joined",
	account.MemberChanged:        "Member's role changed",
	account.MemberRemoved:        "Member removed",
	account.MemberLeft:           "Member left",

	account.ScreeningRefused:     "Refused: an address that is not served",
	account.WebhookCreated:       "Webhook created",
	account.WebhookUpdated:       "Webhook changed",
	account.WebhookSecretRotated: "Webhook secret rotated",
	account.WebhookDeleted:       "Webhook deleted",
	account.WebhookReplayed:      "Webhook replayed",
}

// auditView is an entry as the page shows it.
type auditView struct {
	account.AuditEntry
	What string
	// Hidden means that the role does not see from where this was done.
	Hidden bool
}

// listAudit answers GET /console/audit, newest first; before is the last entry of the previous page.
func (c *console) listAudit(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	before, err := f.cursor("before")
	if err != nil {
		return err
	}
	entries, err := c.Identities.AuditLog(r.Context(), user.principal.Account.ID, before, pageSize+1)
	if err != nil {
		return err
	}
	next := ""
	if len(entries) > pageSize {
		entries = entries[:pageSize]
		next = "/console/audit?before=" + entries[pageSize-1].ID.String()
	}
	views := make([]auditView, len(entries))
	for i, e := range entries {
		what, known := actions[e.Action]
		if !known {
			what = string(e.Action)
		}
		views[i] = auditView{e, what, !e.Actor.Operator && !user.principal.SeesBrowserOf(e.Actor.PersonID)}
		if views[i].Hidden {
			views[i].Actor.IPAddress, views[i].Actor.UserAgent = "", ""
		}
	}
	return c.render(w, r, user, "audit", view{Title: "Audit log", Section: "audit", Body: map[string]any{
		"Entries": views, "Next": next, "First": before == uuid.Nil,
	}})
}

// cursor parses a list's cursor: the id of the previous page's last row, empty for the first page.
func (f *form) cursor(name string) (uuid.UUID, error) {
	if f.is(name, "") {
		return uuid.Nil, nil
	}
	id, err := uuid.Parse(f.values[name])
	if err != nil {
		return uuid.Nil, errCursor
	}
	return id, nil
}

var errCursor = pageError{
	status: http.StatusBadRequest, Title: "No such page", Text: "The address names a place that this list does not have. Start again from its first page.",
}
