package account_test

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
)

// A shared account keeps an owner who can act, and people stay owners of their own account, also beside other owners.
func TestRoster_CanLose(t *testing.T) {
	t.Parallel()
	own, shared := uuid.New(), uuid.New()
	member := func(of, person uuid.UUID, role account.Role, disabled bool) account.Member {
		return account.Member{AccountID: of, PersonID: person, Role: role, Disabled: disabled}
	}
	ann, bob := member(shared, uuid.New(), account.RoleOwner, false), uuid.New()
	holder := member(own, own, account.RoleOwner, false)
	for name, c := range map[string]struct {
		lost  account.Member
		other account.Member
		want  error
	}{
		"the only owner":                {ann, member(shared, bob, account.RoleDeveloper, false), account.ErrLastOwner},
		"one of two owners":             {ann, member(shared, bob, account.RoleOwner, false), nil},
		"the last owner who can act":    {ann, member(shared, bob, account.RoleOwner, true), account.ErrLastOwner},
		"an owner who is disabled":      {member(shared, bob, account.RoleOwner, true), ann, nil},
		"a developer":                   {member(shared, bob, account.RoleDeveloper, false), ann, nil},
		"the holder beside an owner":    {holder, member(own, bob, account.RoleOwner, false), account.ErrHolder},
		"an owner of another's account": {member(own, bob, account.RoleOwner, false), holder, nil},
	} {
		if err := (account.Roster{c.lost, c.other}).CanLose(c.lost); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
