package auth_test

import (
	"net/http"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/pgtest"
	"intents.internal/core/web/webtest"
)

// A route that names an account refuses those who are not its members, and a member whose role does not allow it. TestSessionRoutes_Needs and
// TestSessionRoutes_Rights have what each route needs.
func TestRoles(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann := s.SignUp(t, "ann@example.com")
	shop, members := s.ShareWith(t, ann, map[string]string{"viewer@example.com": "viewer", "developer@example.com": "developer"})
	notAllowed := webtest.Refused(t, 403, "ROLE_NOT_ALLOWED", "Your role in this account does not allow that; ask one of its owners.")
	notMember := webtest.Refused(t, 403, "USER_IS_NOT_A_MEMBER_OF_THE_ORGANIZATION", "You are not a member of such an account; list those that you are in.")
	stranger := s.SignUp(t, "eve@example.com")
	in := func(more string) string { return `{"organizationId":"` + shop + `"` + more + `}` }
	nobody := `,"memberId":"` + uuid.NewString() + `","role":"viewer"`
	for _, c := range []struct {
		method, path, body string
		viewer             bool
	}{
		{"GET", "/auth/organization/get-full-organization?organizationId=" + shop, "", true},
		{"GET", "/auth/organization/list-members?organizationSlug=" + shop, "", true},
		{"GET", "/auth/organization/list-invitations?organizationId=" + shop, "", true},
		{"POST", "/auth/organization/invite-member", in(`,"email":"x@example.com","role":"owner"`), false},
		{"POST", "/auth/organization/update-member-role", in(nobody), false},
		{"POST", "/auth/organization/remove-member", in(`,"memberIdOrEmail":"ann@example.com"`), false},
		{"POST", "/auth/organization/update", in(`,"data":{"name":"Shop"}`), false},
		{"POST", "/auth/organization/delete", in(``), false},
	} {
		webtest.Same(t, c.path+" as a stranger", notMember, s.Call(t, c.method, c.path, c.body, stranger...))
		if got := s.Call(t, c.method, c.path, c.body, members["viewer"]...); !c.viewer {
			webtest.Same(t, c.path+" as a viewer", notAllowed, got)
		} else if got.Status != http.StatusOK {
			t.Errorf("%s as a viewer: %v", c.path, got)
		}
	}
	webtest.Same(t, "a viewer's key", notAllowed, s.Call(t, "POST", "/auth/api-key/create", `{"name":"ci"}`, members["viewer"]...))
	s.CreateKey(t, `{"name":"ci"}`, members["developer"])
	developer := s.AccountID(t, "developer@example.com")
	if n := pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM audit_log WHERE account_id = $1 AND action = 'key_created' AND person_id = $2`, shop, developer); n != 1 {
		t.Errorf("the shared account's log has %d keys of the developer", n)
	}
}

// What the routes of organizations refuse; TestEveryRoute_Members has what they answer otherwise.
func TestOrganizations_Refused(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t, webtest.WithMail)
	ann, bob := s.SignUp(t, "ann@example.com"), s.SignUp(t, "bob@example.com")
	webtest.Same(t, "an unknown field", webtest.Invalid(t, "/logo", "is not a known field"), s.Call(t, "POST", "/auth/organization/create", `{"name":"Shop","logo":"x"}`, ann...))
	webtest.Same(t, "no name", webtest.Invalid(t, "/name", "must have 1 to 128 characters"), s.Call(t, "POST", "/auth/organization/create", `{"name":" "}`, ann...))
	s.Call(t, "POST", "/auth/organization/create", `{"name":"Shop","slug":"shop"}`, ann...)
	s.Call(t, "POST", "/auth/organization/set-active", `{"organizationId":null}`, ann...)
	webtest.Same(t, "a number", webtest.Invalid(t, "/organizationId", "must not be a JSON number"), s.Call(t, "POST", "/auth/organization/set-active", `{"organizationId":1}`, ann...))
	shop := pgtest.LookUp[uuid.UUID](t, s.Store, `SELECT id FROM accounts WHERE shared`).String()
	s.Call(t, "POST", "/auth/organization/set-active", `{"organizationSlug":"`+shop+`"}`, ann...)
	webtest.Same(t, "a role", webtest.Invalid(t, "/role", "must be owner, developer or viewer"), s.Call(t, "POST", "/auth/organization/invite-member", `{"email":"bob@example.com","role":"admin"}`, ann...))
	webtest.Same(t, "an address", webtest.Invalid(t, "/email", "must not be under .invalid, where nobody has an address"), s.Call(t, "POST", "/auth/organization/invite-member", `{"email":"x@shared.invalid","role":"viewer"}`, ann...))
	mailed := s.Call(t, "POST", "/auth/organization/invite-member", `{"email":"Bob@example.com","role":"viewer"}`, ann...)
	if body, _ := mailed.Body.(map[string]any); mailed.Status != 200 || body["link"] != nil {
		t.Errorf("a mailed invitation: %v", mailed)
	}
	webtest.Same(t, "invited", webtest.Refused(t, 400, "USER_IS_ALREADY_INVITED_TO_THIS_ORGANIZATION", "The address is invited already; set resend to invite it again, or cancel that invitation."),
		s.Call(t, "POST", "/auth/organization/invite-member", `{"email":"bob@example.com","role":"viewer"}`, ann...))
	pgtest.Exec(t, s.Store, `UPDATE invitations SET token_hash = sha256('token')`)
	webtest.Same(t, "of ann", webtest.Refused(t, 403, "YOU_ARE_NOT_THE_RECIPIENT_OF_THE_INVITATION", "The invitation is for another e-mail address; sign in with that one."),
		s.Call(t, "GET", "/auth/organization/get-invitation?id=token", "", ann...))
	webtest.Same(t, "no such", webtest.Refused(t, 400, "INVITATION_NOT_FOUND", "The invitation was answered or canceled, has expired, or its link is not complete; ask for another."),
		s.Call(t, "POST", "/auth/organization/accept-invitation", `{"invitationId":"guess"}`, bob...))
	s.Call(t, "POST", "/auth/organization/accept-invitation", `{"invitationId":"token"}`, bob...)
	s.Call(t, "POST", "/auth/organization/update-member-role", `{"memberId":"`+s.AccountID(t, "bob@example.com")+`","role":"developer"}`, ann...)
	s.Call(t, "POST", "/auth/organization/leave", `{"organizationId":"`+shop+`"}`, bob...)
	webtest.Same(t, "the last owner", webtest.Refused(t, 400, "YOU_CANNOT_LEAVE_THE_ORGANIZATION_AS_THE_ONLY_OWNER", "A shared account needs an owner; make another member one first, or delete the shared account."),
		s.Call(t, "POST", "/auth/organization/leave", `{"organizationId":"`+shop+`"}`, ann...))
	webtest.Same(t, "delete-user", webtest.Refused(t, 400, "YOU_CANNOT_LEAVE_THE_ORGANIZATION_AS_THE_ONLY_OWNER", "A shared account needs an owner; make another member one first, or delete the shared account."),
		s.Call(t, "POST", "/auth/delete-user", `{"password":"`+webtest.Password+`"}`, ann...))
	webtest.Same(t, "a wrong password", webtest.Refused(t, 400, "INVALID_PASSWORD", "Invalid password."), s.Call(t, "POST", "/auth/organization/delete", `{"organizationId":"`+shop+`","password":"wrong"}`, ann...))
	webtest.Same(t, "no new name", webtest.Invalid(t, "/data/name", "must have 1 to 128 characters"), s.Call(t, "POST", "/auth/organization/update", `{"organizationId":"`+shop+`","data":{"name":""}}`, ann...))
	notShared := webtest.Refused(t, 400, "ACCOUNT_NOT_SHARED", "Somebody signs in to this account, so that it keeps its name, and that person alone can delete it, with /auth/delete-user.")
	webtest.Same(t, "rename the own account", notShared, s.Call(t, "POST", "/auth/organization/update", `{"organizationId":"`+s.AccountID(t, "ann@example.com")+`","data":{"name":"Kiosk"}}`, ann...))
	s.Call(t, "POST", "/auth/organization/delete", `{"organizationId":"`+shop+`","password":"`+webtest.Password+`"}`, ann...)
	webtest.Same(t, "the own account", notShared,
		s.Call(t, "POST", "/auth/organization/delete", `{"organizationId":"`+s.AccountID(t, "ann@example.com")+`"}`, ann...))
}

// What cannot be taken back wants a session of the last ten minutes, or the password in the body: TestSessionRoutes_Rights has each route.
func TestConfirmation(t *testing.T) {
	t.Parallel()
	s := webtest.Start(t)
	ann := s.SignUp(t, "ann@example.com")
	pgtest.Exec(t, s.Store, `UPDATE sessions SET created_at = now() - interval '11 minutes'`)
	webtest.Same(t, "a live key in an old session",
		webtest.Refused(t, 403, "SESSION_NOT_FRESH", "You signed in more than ten minutes ago. Repeat this with your password in the member password."),
		s.Call(t, "POST", "/auth/api-key/create", `{"name":"ci","environment":"live"}`, ann...))
	s.CreateKey(t, `{"name":"ci","environment":"live","password":"`+webtest.Password+`"}`, ann)
}
