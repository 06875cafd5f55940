package identity_test

import (
	"testing"
	"time"

	"intents.internal/core/identity/account"
)

// An owner whom the operator has disabled is no owner: the last one who can act stays, and may remove the other.
func TestMembers_DisabledOwner(t *testing.T) {
	t.Parallel()
	core := newService(t, withPasswords(t))
	ann, bob := signedIn(t, core, "ann@example.com"), signedIn(t, core, "bob@example.com")
	ann.shares("Shop")
	is(t, "bob", bob.accepts(ann.invites("bob@example.com", account.RoleOwner)), nil)
	is(t, "disabled", core.Store.DisableAccount(t.Context(), "bob@example.com", account.Actor{Operator: true}, time.Now()), nil)
	on := ann.principal()
	is(t, "leaves", call(core.Leave(t.Context(), ann.client, on)), account.ErrLastOwner)
	is(t, "demotes herself", call(core.ChangeMember(t.Context(), ann.client, on, ann.id, account.RoleViewer)), account.ErrLastOwner)
	is(t, "deletes herself", core.DeleteAccount(t.Context(), with(ann.client, password), on), account.ErrLastOwner)
	is(t, "removes the other", call(core.RemoveMember(t.Context(), ann.client, on, bob.id)), nil)
}
