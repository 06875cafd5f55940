package account

import (
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Role is what a member may do with an account. Package access has the table.
type Role string

// The roles.
const (
	RoleOwner     Role = "owner"
	RoleDeveloper Role = "developer"
	RoleViewer    Role = "viewer"
)

// Roles are all, from the one that may do the most.
var Roles = []Role{RoleOwner, RoleDeveloper, RoleViewer}

// ParseRole reads a role by its name.
func ParseRole(s string) (Role, error) {
	if role := Role(s); slices.Contains(Roles, role) {
		return role, nil
	}
	return "", &InvalidError{Field: "role", Message: "must be owner, developer or viewer"}
}

// The bounds of what people share.
const (
	// MaxMembers is how many members and open invitations an account has at most.
	MaxMembers = 100
	// MaxSharedAccounts is how many shared accounts a person owns at most, by making them.
	MaxSharedAccounts = 10
	// InvitationLifetime is how long an invitation can be accepted.
	InvitationLifetime = 48 * time.Hour
)

// What callers branch on.
var (
	ErrNotMember      = errors.New("not a member of the account")
	ErrNoSuchMember   = errors.New("the account has no such member")
	ErrAlreadyMember  = errors.New("a member of the account already")
	ErrAlreadyInvited = errors.New("invited to the account already")
	ErrNoInvitation   = errors.New("no such invitation")
	ErrNotInvited     = errors.New("the invitation is for another address")
	ErrLastOwner      = errors.New("the last owner of a shared account")
	ErrHolder         = errors.New("the account is the member's own")
	ErrTooManyMembers = errors.New("the account has as many members as it may")
	ErrNotShared      = errors.New("somebody signs in to the account")
	ErrTooManyShared  = errors.New("the person owns as many shared accounts as possible")
)

// Member is a person's right to act on an account. A person is the account that somebody signed up with.
type Member struct {
	AccountID uuid.UUID
	PersonID  uuid.UUID
	Role      Role
	CreatedAt time.Time
	// Name and Email are the person's.
	Name, Email string
}

// Holder reports whether the account is the member's own.
func (m Member) Holder() bool { return m.AccountID == m.PersonID }

// Membership is an account as one of its members has it.
type Membership struct {
	Account *Account
	Role    Role
}

// Roster is all members of one account.
type Roster []Member

// Find returns a member, or ErrNoSuchMember.
func (r Roster) Find(person uuid.UUID) (Member, error) {
	for _, m := range r {
		if m.PersonID == person {
			return m, nil
		}
	}
	return Member{}, ErrNoSuchMember
}

// CanLose returns ErrHolder or ErrLastOwner for an owner whom the account needs.
func (r Roster) CanLose(m Member) error {
	if m.Holder() {
		return ErrHolder
	}
	owners := 0
	for _, one := range r {
		if one.Role == RoleOwner {
			owners++
		}
	}
	if m.Role == RoleOwner && owners == 1 {
		return ErrLastOwner
	}
	return nil
}

// NewSharedAccount makes an account that nobody signs in to. Its address is one under .invalid (RFC 2606).
func NewSharedAccount(name string, now time.Time) (*Account, error) {
	name, err := parseName(name, longestName)
	if err != nil {
		return nil, err
	}
	a, err := newAccount(name, "", "", now)
	if err != nil {
		return nil, err
	}
	a.Email, a.Shared = a.ID.String()+"@shared.invalid", true
	return a, nil
}

// Rename gives a shared account another name. It returns ErrNotShared or an *InvalidError.
func (a *Account) Rename(name string) error {
	if !a.Shared {
		return ErrNotShared
	}
	name, err := parseName(name, longestName)
	if err == nil {
		a.Name = name
	}
	return err
}

// Invitation lets the person with the address, or with the link, become a member.
type Invitation struct {
	ID        uuid.UUID
	AccountID uuid.UUID
	InviterID uuid.UUID
	Email     string
	Role      Role
	// Mailed invitations are for the owner of the address alone. Others are for anybody who has the link.
	Mailed    bool
	ExpiresAt time.Time
	CreatedAt time.Time
	// AccountName and InviterEmail are as they are now.
	AccountName, InviterEmail string
}

// NewInvitation invites an address to an account.
func NewInvitation(accountID, inviterID uuid.UUID, email string, role Role, now time.Time) (*Invitation, error) {
	email, err := ParseNewEmail("email", email)
	if err != nil {
		return nil, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	return &Invitation{
		ID: id, AccountID: accountID, InviterID: inviterID, Email: email, Role: role, ExpiresAt: now.Add(InvitationLifetime), CreatedAt: now,
	}, nil
}

// For returns ErrNotInvited for a person who may not answer the invitation.
func (i *Invitation) For(person *Account) error {
	if i.Mailed && i.Email != person.Email {
		return ErrNotInvited
	}
	return nil
}
