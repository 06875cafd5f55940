package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/identity"
	"intents.internal/core/pgtest"
)

// share makes a shared account and returns its id.
func (b *browser) share(name string) string {
	b.t.Helper()
	b.post("/console/accounts/share", "name", name, "formToken", b.get("/console/accounts").field("formToken")).leadsTo("/console/members?done=shared")
	return pgtest.LookUp[uuid.UUID](b.t, b.site.store, `SELECT id FROM accounts WHERE shared AND name = $1`, name).String()
}

// invite invites an address to the account that the browser acts on, and returns the path of the link that the page shows.
func (b *browser) invite(email, role string) string {
	b.t.Helper()
	page := b.post("/console/members/invite", "email", email, "role", role)
	page.is(http.StatusOK, "Pass this link on", "anyone who opens it can accept", email)
	return strings.TrimPrefix(page.element("link"), b.site.url)
}

// token is that of an invitation's link.
func token(path string) string {
	_, token, _ := strings.Cut(path, "token=")
	return token
}

// An account is shared, somebody is invited, comes by way of signing in, sees what the role allows, and is removed.
func TestMembers(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann, bob := s.signedUp(t, "ann@example.com"), s.signedUp(t, "bob@example.com")
	bobID := pgtest.LookUp[uuid.UUID](t, s.store, `SELECT id FROM accounts WHERE email = 'bob@example.com'`).String()
	ann.get("/console/accounts").is(http.StatusOK, "Your accounts", "your own", "Current account")
	formToken := ann.get("/console/accounts").field("formToken")
	ann.post("/console/accounts/share", "name", " ", "formToken", formToken).is(http.StatusBadRequest).tied("name", "Name must have 1 to 128 characters.")
	shop := ann.share(`<b>Shop</b>`)
	ann.get("/console/members").is(http.StatusOK, "People with access to <b>Shop</b>", "working in <b>Shop</b> as owner", "Delete the shared account")
	keyID, _ := ann.makeKey("shop key")
	ann.post("/console/members/invite", "email", "bob", "role", "viewer").is(http.StatusBadRequest).tied("email", "E-mail address must be an e-mail address such as name@example.com.")
	ann.post("/console/members/leave").is(http.StatusBadRequest, "A shared account needs an owner.")

	link := ann.invite("bob@example.com", "viewer")
	ann.get("/console/members").is(http.StatusOK, "Open invitations", "bob@example.com")
	stranger := s.browser(t)
	asked := stranger.get(link).is(http.StatusOK, "You are invited", "<b>Shop</b>", "as viewer", "Sign in first")
	signIn := asked.link("/console/sign-in?next")
	stranger.post("/console/sign-in", "email", "bob@example.com", "password", password, "next", stranger.get(signIn).field("next")).leadsTo(link)
	stranger.get("/console/invitation?token=x").is(http.StatusBadRequest, "No such invitation")
	bob.get(link).is(http.StatusOK, "Accept", "Decline")
	bob.post("/console/invitation/accept", "token", token(link)).leadsTo("/console/accounts?done=joined")
	bob.post("/console/invitation/accept", "token", token(link)).is(http.StatusBadRequest, "No such invitation")

	bob.get("/console/keys").is(http.StatusOK, "shop key", "working in <b>Shop</b> as viewer")
	for path, never := range map[string]string{
		"/console/keys": "Create a key", "/console/keys/" + keyID: "Rotate", "/console/webhooks": "Create a webhook", "/console/transfers": "New transfer",
		"/console/members": "Invite somebody",
	} {
		if page := bob.get(path).is(http.StatusOK); strings.Contains(page.text(), never) {
			t.Errorf("a viewer's %s offers %q", path, never)
		}
	}
	log := bob.get("/console/audit").is(http.StatusOK, "Key created", "not for viewers", "Member joined")
	if text := log.text(); strings.Count(text, "not for viewers") != 3 || strings.Count(text, "192.0.2.1") != 1 {
		t.Errorf("a viewer's audit log has others' addresses, or not his own: %s", text)
	}
	if text := ann.get("/console/audit").text(); strings.Contains(text, "not for viewers") {
		t.Errorf("an owner's audit log hides addresses: %s", text)
	}
	bob.post("/console/keys/"+keyID+"/disable").is(http.StatusForbidden, "Your role in this account does not allow that")
	bob.get("/console/transfers/new").is(http.StatusForbidden, "Not with your role")
	ann.post("/console/members/change", "person", bobID, "role", "developer").leadsTo("/console/members?done=member-changed")
	bob.get("/console/keys").is(http.StatusOK, "Create a key")
	bob.post("/console/accounts/act", "account", bobID).leadsTo("/console/accounts?done=acting")
	if page := bob.get("/console/keys"); strings.Contains(page.text(), "shop key") {
		t.Error("the own account has the shared one's key")
	}
	bob.post("/console/accounts/act", "account", uuid.NewString()).is(http.StatusForbidden, "You are not a member")
	bob.post("/console/accounts/act", "account", shop).leadsTo("/console/accounts?done=acting")
	ann.get("/console/audit").is(http.StatusOK, "Member joined", "bob@example.com as viewer", "Key created")

	ann.post("/console/members/rename", "name", " ").is(http.StatusBadRequest).tied("name", "Name must have 1 to 128 characters.")
	ann.post("/console/members/rename", "name", "Kiosk").leadsTo("/console/members?done=shared-renamed")
	ann.get("/console/audit").is(http.StatusOK, "Shared account renamed", "Kiosk, was <b>Shop</b>")
	ann.post("/console/members/remove", "person", bobID).leadsTo("/console/members?done=member-removed")
	bob.get("/console").leadsTo("/console/sign-in?done=ended&next=%2Fconsole")
	ann.post("/console/members/delete", "password", "wrong").is(http.StatusBadRequest).tied("password", "The password is wrong.")
	ann.post("/console/members/delete", "password", password).leadsTo("/console/accounts?done=shared-ended")
	ann.get("/console/accounts?done=shared-ended").is(http.StatusOK, "The shared account is deleted")
}

// A form that was left open in one tab does nothing to the account that was chosen in another.
func TestMembers_OtherTab(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	own := pgtest.LookUp[uuid.UUID](t, s.store, `SELECT id FROM accounts WHERE email = 'ann@example.com'`).String()
	keys := attribute(ann.get("/console/keys").form("/console/keys"), "action")
	shop := ann.share("Shop")
	members := attribute(ann.get("/console/members").form("/console/members/delete"), "action")
	ann.post(keys, "name", "key").is(http.StatusConflict, "Not this account", "so nothing was done")
	ann.post("/console/accounts/act", "account", own).leadsTo("/console/accounts?done=acting")
	ann.post(members, "password", password).is(http.StatusConflict, "Not this account")
	if n := pgtest.LookUp[int](t, s.store, `SELECT count(*) FROM api_keys`); n != 0 {
		t.Errorf("%d keys were made", n)
	}
	ann.post("/console/accounts/act", "account", shop).leadsTo("/console/accounts?done=acting")
	ann.post(members, "password", password).leadsTo("/console/accounts?done=shared-ended")
	ann.get(attribute(ann.get("/console/webhooks").form("/console/webhooks"), "action")).is(http.StatusOK, "Webhooks")
}

// Where mail is sent the page shows no link, and an invitation is for its address alone.
func TestInvitation_Mailed(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *identity.Config) { c.MailQueued = func() {} })
	ann, bob, eve := s.signedUp(t, "ann@example.com"), s.signedUp(t, "bob@example.com"), s.signedUp(t, "eve@example.com")
	ann.post("/console/members/invite", "email", "bob@example.com", "role", "owner").is(http.StatusForbidden).alerts("Verify your own e-mail address first")
	pgtest.Exec(t, s.store, `UPDATE accounts SET email_verified_at = now() WHERE email = 'ann@example.com'`)
	ann.post("/console/members/invite", "email", "bob@example.com", "role", "owner").leadsTo("/console/members?done=invited")
	pgtest.Exec(t, s.store, `UPDATE invitations SET token_hash = sha256('token')`)
	page := eve.get("/console/invitation?token=token").is(http.StatusOK, "You are signed in with another address")
	if strings.Contains(page.text(), "Accept") {
		t.Error("somebody else can accept")
	}
	eve.post("/console/invitation/accept", "token", "token").is(http.StatusForbidden, "For somebody else")
	bob.post("/console/invitation/decline", "token", "token").leadsTo("/console/accounts?done=declined")
	bob.get("/console/invitation?token=token").is(http.StatusBadRequest, "No such invitation")
	ann.post("/console/members/invite", "email", "bob@example.com", "role", "owner").leadsTo("/console/members?done=invited")
	id := pgtest.LookUp[uuid.UUID](t, s.store, `SELECT id FROM invitations`).String()
	eve.post("/console/members/cancel", "invitation", id).is(http.StatusBadRequest, "No such invitation") // it is not of her account
	ann.post("/console/members/cancel", "invitation", id).leadsTo("/console/members?done=invite-canceled")
}

// Some time after signing in, what gives or takes rights wants the password, in the form that asks for it: TestFormRoutes_Rights has each form.
func TestConfirmation(t *testing.T) {
	t.Parallel()
	s := start(t)
	ann := s.signedUp(t, "ann@example.com")
	s.signedUp(t, "bob@example.com")
	pgtest.Exec(t, s.store, `INSERT INTO members (account_id, person_id, role, created_at)
		SELECT a.id, b.id, 'viewer', now() FROM accounts AS a, accounts AS b
		WHERE a.email = 'ann@example.com' AND b.email = 'bob@example.com'`)
	bob := pgtest.LookUp[uuid.UUID](t, s.store, `SELECT id FROM accounts WHERE email = 'bob@example.com'`).String()
	const old = "You signed in more than ten minutes ago"
	if page := ann.get("/console/keys"); strings.Contains(page.text(), "to confirm") {
		t.Error("a new session is asked for the password")
	}
	pgtest.Exec(t, s.store, `UPDATE sessions SET created_at = now() - interval '11 minutes'`)
	ann.get("/console/members").is(http.StatusOK, old)
	ann.post("/console/members/remove", "person", bob).is(http.StatusForbidden, old).tied("password", old+". Type your password here to confirm.")
	ann.post("/console/members/remove", "person", bob, "password", "wrong").is(http.StatusBadRequest).tied("password", "The password is wrong.")
	create := func(confirmed string) *answer {
		page := ann.get("/console/keys").is(http.StatusOK, "Your password, to confirm", "For a live key only")
		return ann.post("/console/keys", "name", "ci", "environment", "live", "expiresIn", "never", "webhooks", "1", "formToken", page.field("formToken"), "password", confirmed)
	}
	create("wrong").is(http.StatusBadRequest).tied("password", "The password is wrong.")
	create(password).is(http.StatusOK, "Your new key")
	live := "/console/keys/" + pgtest.LookUp[uuid.UUID](t, s.store, `SELECT id FROM api_keys WHERE environment = 'live'`).String()
	ann.get(live).is(http.StatusOK, "Your password, to confirm")
}
