package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"

	"intents.internal/core/identity/access"
	"intents.internal/core/identity/account"
)

// auditPath is the path of the log, and auditCSVPath of the file.
const auditPath, auditCSVPath = "/console/audit", "/console/audit.csv"

// pageSize is the number of rows on one page of a list.
const pageSize = 25

// actions are the display names of the audit log's actions.
var actions = map[account.Action]string{
	account.SignedUp:             "Signed up",
	account.SignedIn:             "Signed in",
	account.SignInFailed:         "Sign-in failed",
	account.SignedOut:            "Signed out",
	account.ResetRequested:       "Link to a new password asked for",
	account.AccountSwitched:      "Switched to the account",
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

	account.OriginsChanged:       "Origins of pages changed",
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

// auditFilters are the fields of the log's query that restrict it.
var auditFilters = []string{"action", "who", "since", "until"}

// operatorChoice is the choice of who that stands for operators.
const operatorChoice = "operator"

// listAudit answers GET /console/audit, newest first, with the filters of the query; before is the last entry of the previous page.
func (c *console) listAudit(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	query, err := f.auditQuery()
	if err != nil {
		return err
	}
	var views []auditView
	next := uuid.Nil
	if query.Limit = pageSize; f.ok() {
		if views, next, err = c.auditPage(r, user, query); err != nil {
			return err
		}
	}
	people, err := c.Identities.Members(r.Context(), user.principal.Account.ID)
	if err != nil {
		return err
	}
	body := map[string]any{
		"Entries": views, "Next": "", "First": query.Before == uuid.Nil, "Actions": actionChoices(), "People": people, "Operator": operatorChoice,
		"Filtered": f.hasAny(auditFilters),
		"CSV":      auditCSVPath + f.queryOf(auditFilters),
	}
	if next != uuid.Nil {
		body["Next"] = auditPath + f.queryOf(auditFilters, "before", next.String())
	}
	return c.render(w, r, user, "audit", view{Title: "Audit log", Section: "audit", Form: f, Body: body})
}

// auditQuery reads the query. An invalid filter is an error of its field.
func (f *form) auditQuery() (query access.AuditQuery, err error) {
	fault := func(field, text string) {
		f.add(pageError{status: http.StatusBadRequest, Field: field, Text: text})
	}
	if given := f.values["action"]; given != "" {
		if query.Action = account.Action(given); actions[query.Action] == "" {
			fault("action", "There is no such action.")
		}
	}
	if given := f.values["who"]; given == operatorChoice {
		query.Operator = true
	} else if given != "" {
		if query.PersonID, err = uuid.Parse(given); err != nil {
			fault("who", "There is no such person.")
		}
	}
	query.Since, query.Until = f.days()
	query.Before, err = f.cursor("before")
	return query, err
}

// auditPage reads a page without what the user's role does not see.
func (c *console) auditPage(r *http.Request, user currentUser, query access.AuditQuery) ([]auditView, uuid.UUID, error) {
	entries, next, err := c.Identities.AuditLog(r.Context(), user.principal.Account.ID, query)
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
	return views, next, err
}

// actionChoices are the filter's choices, by their texts.
func actionChoices() []choice {
	choices := make([]choice, 0, len(actions))
	for action, text := range actions {
		choices = append(choices, choice{string(action), text})
	}
	slices.SortFunc(choices, func(a, b choice) int { return strings.Compare(a.Text, b.Text) })
	return choices
}

// queryOf returns the query with these fields that are not empty, and further names and values in turn; it is empty without any.
func (f *form) queryOf(fields []string, more ...string) string {
	query := url.Values{}
	for _, name := range fields {
		if !f.is(name, "") {
			query.Set(name, f.values[name])
		}
	}
	for n := 0; n < len(more); n += 2 {
		query.Set(more[n], more[n+1])
	}
	if len(query) == 0 {
		return ""
	}
	return "?" + query.Encode()
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
