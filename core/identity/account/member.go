package account

import (
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Role determines what a member may do with an account. Package identity has the permissions.
type Role string

// The roles.
const (
	RoleOwner     Role = "owner"
	RoleDeveloper Role = "developer"
	RoleViewer    Role = "viewer"
)

// Roles are all roles, the most powerful first.
var Roles = []Role{RoleOwner, RoleDeveloper, RoleViewer}

// ParseRole parses the name of a role.
func ParseRole(s string) (Role, error) {
	if role := Role(s); slices.Contains(Roles, role) {
		return role, nil
	}
	return "", &InvalidError{Field: "role", Message: "must be owner, developer or viewer"}
}

// The limits of sharing.
const (
	// MaxMembers is the maximum number of members and open invitations of an account.
	MaxMembers = 100
	// MaxSharedAccounts bounds new shared accounts: a person who owns this many cannot create another.
	MaxSharedAccounts = 10
	// InvitationLifetime is how long an invitation can be accepted.
	InvitationLifetime = 48 * time.Hour
)

// The errors that callers branch on.
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
	// Disabled means that an operator has disabled the person, who can do nothing with the account.
	Disabled bool
}

// Holder reports whether the account is the member's own.
func (m Member) Holder() bool { return m.AccountID == m.PersonID }

// Membership is an account with a member's role in it.
type Membership struct {
	Account *Account
	Role    Role
}

// Roster is the list of all members of one account.
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

// CanLose returns ErrHolder or ErrLastOwner for an owner that the account must keep. Owners who are disabled do not count.
func (r Roster) CanLose(m Member) error {
	if m.Holder() {
		return ErrHolder
	}
	if m.Role != RoleOwner {
		return nil
	}
	for _, other := range r {
		if other.PersonID != m.PersonID && other.Role == RoleOwner && !other.Disabled {
			return nil
		}
	}
	return ErrLastOwner
}

// NewSharedAccount creates an account that nobody signs in to. Its address is under .invalid (RFC 2606).
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

// Rename renames a shared account. It returns ErrNotShared or an *InvalidError.
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
	// Mailed invitations are only for the owner of the address. Others are for anyone who has the link.
	Mailed    bool
	ExpiresAt time.Time
	CreatedAt time.Time
	// AccountName and InviterEmail are the current values.
	AccountName, InviterEmail string
}

// NewInvitation returns an invitation of an address to an account.
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

// For returns ErrNotInvited for a person who may neither accept nor decline the invitation.
func (i *Invitation) For(person *Account) error {
	if i.Mailed && i.Email != person.Email {
		return ErrNotInvited
	}
	return nil
}
