package identity

import (
	"net/netip"
	"slices"

	"intents.internal/core/identity/account"
	"intents.internal/pkg/network"
)

// Effect is what a write gives to a principal that it did not have (a person, a key, an invitation, the receiver of a webhook, a way to
// sign in), or takes from another person. It is decided from the values before and after the write, whatever route asks for it. A
// write with an effect needs a fresh session or the password, see Change.Allow, and its notice is in tells.
type Effect string

// The effects of writes.
const (
	NoEffect Effect = ""
	// givesLiveKey is a live key that is new, or may do more, from more networks or for longer than before.
	givesLiveKey Effect = "live_key"
	// GivesLiveWebhook is a live webhook with another receiver, more events or a new secret.
	GivesLiveWebhook Effect = "live_webhook"
	givesRole        Effect = "role"
	givesOwner       Effect = "owner"
	// takesRole takes a role, or a part of it, from another person.
	takesRole Effect = "role_taken"
	// changesSignIn links or unlinks a way to sign in.
	changesSignIn Effect = "sign_in"
	// changesPasskeys adds or removes a passkey.
	changesPasskeys Effect = "passkey"
	// changesEmail asks for another address, which can reset the password.
	changesEmail Effect = "email"
	// endsAccount ends an account, and with it the roles of its members.
	endsAccount Effect = "account_ended"
)

// tells is who gets a notice of an effect, whose page is in noticePages. A change of the address has mails of its own.
var tells = map[Effect]account.Notice{
	givesLiveKey: account.NoticeToOwners, GivesLiveWebhook: account.NoticeToOwners, givesRole: account.NoticeToOwners,
	givesOwner: account.NoticeToOwners, takesRole: account.NoticeToOwners, endsAccount: account.NoticeToOwners,
	changesSignIn: account.NoticeToPerson, changesPasskeys: account.NoticeToPerson,
}

// needsSecondFactor are the effects that a password alone must not have where Config.SecondFactor is set.
var needsSecondFactor = map[Effect]bool{givesLiveKey: true, GivesLiveWebhook: true, givesOwner: true}

// keyEffect compares a key with what it was before, nil for a new one. Test keys move nothing of value.
func keyEffect(before, after *account.Key) Effect {
	if after.Environment != network.Live {
		return NoEffect
	}
	switch {
	case before == nil, after.Enabled && !before.Enabled, after.Scopes&^before.Scopes != 0, widens(before.Networks, after.Networks),
		before.ExpiresAt != nil && (after.ExpiresAt == nil || after.ExpiresAt.After(*before.ExpiresAt)):
		return givesLiveKey
	}
	return NoEffect
}

// widens reports whether networks have an address that none of those before has alone. No networks are all.
func widens(before, after []netip.Prefix) bool {
	if len(before) == 0 {
		return false
	}
	return len(after) == 0 || slices.ContainsFunc(after, func(a netip.Prefix) bool {
		return !slices.ContainsFunc(before, func(b netip.Prefix) bool { return b.Bits() <= a.Bits() && b.Contains(a.Addr()) })
	})
}

// roleEffect compares the role of a person or an invitation with what it was before, empty for none. own is true for the role of the
// person who acts.
func roleEffect(before, after account.Role, own bool) Effect {
	rank := func(role account.Role) int { // of the most powerful role first, none last
		if at := slices.Index(account.Roles, role); at >= 0 {
			return at
		}
		return len(account.Roles)
	}
	switch was, is := rank(before), rank(after); {
	case is < was && after == account.RoleOwner:
		return givesOwner
	case is < was:
		return givesRole
	case is > was && !own:
		return takesRole
	default:
		return NoEffect
	}
}
