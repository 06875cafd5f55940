package identity_test

import (
	"errors"
	"strings"
	"testing"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/core/pgtest"
)

// at is the client in whose browser a session is.
func at(in *identity.SignedIn) identity.Client {
	return identity.Client{IP: "203.0.113.7", Token: in.Token}
}

// beginLink starts a flow that links to the account of a session.
func beginLink(t *testing.T, s *identity.Service, in *identity.SignedIn) begun {
	t.Helper()
	to, flow, err := s.Persons.StartLink(t.Context(), at(in), own(in))
	ok(t, err)
	return newBegun(t, to, flow)
}

func (w wallet) signIn(t *testing.T, s *identity.Service) *identity.SignedIn {
	t.Helper()
	message := w.message(nonce(t, s, identity.Client{}))
	return must(s.Persons.SignInWithEthereum(t.Context(), identity.Client{}, message, w.sign(t, message)))(t)
}

func (w wallet) link(t *testing.T, s *identity.Service, in *identity.SignedIn, password string) error {
	t.Helper()
	message := w.message(nonce(t, s, identity.Client{}))
	_, err := s.Persons.LinkWallet(t.Context(), with(at(in), password), own(in), message, w.sign(t, message))
	return err
}

func (w wallet) identity(t *testing.T) account.Identity {
	t.Helper()
	return must(account.NewWalletIdentity(w.address))(t)
}

func TestFinishLink(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := newService(t, i.config)
	w := newWallet(t)
	in := w.signIn(t, s)
	b := beginLink(t, s, in)
	if !identity.LinksAccount(b.flow) || identity.LinksAccount(begin(t, s).flow) {
		t.Error("a link and a sign-in are not told apart")
	}
	is(t, "a link that ends as a sign-in", call(s.Persons.FinishOIDC(t.Context(), identity.Client{}, b.flow, b.state, i.grant(b, nil))), identity.ErrFlowExpired)
	ok(t, s.Persons.FinishLink(t.Context(), at(in), b.flow, b.state, i.grant(b, nil)))
	other, err := i.signIn(t, s, nil)
	if err != nil || other.Account.ID != in.Account.ID || other.Account.Email != strings.ToLower(w.address)+"@eip155.invalid" {
		t.Errorf("the linked identity signs in to %+v, %v", other, err)
	}
	b = beginLink(t, s, in)
	is(t, "linked again", s.Persons.FinishLink(t.Context(), at(in), b.flow, b.state, i.grant(b, nil)), nil)
	want := []string{
		"signed_up||| ", "signed_in||with a wallet| ", "identity_linked||ann at " + i.url + "|203.0.113.7 ", "signed_in||with Example| ",
	}
	equal(t, "the audit log", auditLog(t, s, in.Account.ID), want)
}

// A flow links to the account of the session that started it and to no other: a page that plants a flow of its own, or that has a client
// bring back another's answer, would else give its author a way into the client's account.
func TestFinishLink_OfAnotherSession(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := newService(t, i.config)
	mallory, ann := newWallet(t).signIn(t, s), newWallet(t).signIn(t, s)
	b := beginLink(t, s, mallory)
	signIn := begin(t, s)
	mac := b.flow[strings.LastIndexByte(b.flow, '.'):]
	for name, flow := range map[string]string{
		"another's flow":               b.flow,
		"a sign-in with another MAC":   signIn.flow + mac,
		"a sign-in":                    signIn.flow,
		"without a MAC":                strings.TrimSuffix(b.flow, mac),
		"another's, with a later time": strings.Replace(b.flow, b.state, signIn.state, 1),
		"none":                         "",
	} {
		is(t, name, s.Persons.FinishLink(t.Context(), at(ann), flow, b.state, i.grant(b, nil)), identity.ErrFlowExpired)
	}
	is(t, "signed out", s.Persons.FinishLink(t.Context(), identity.Client{}, b.flow, b.state, i.grant(b, nil)), identity.ErrFlowExpired)
	is(t, "another state", s.Persons.FinishLink(t.Context(), at(mallory), b.flow, signIn.state, i.grant(b, nil)), identity.ErrFlowExpired)
	ok(t, s.Sessions.SignOut(t.Context(), identity.Client{Token: mallory.Token}))
	is(t, "a session that has ended", s.Persons.FinishLink(t.Context(), at(mallory), b.flow, b.state, i.grant(b, nil)), identity.ErrSignedOut)
	equal(t, "identities are linked", pgtest.LookUp[int](t, s.Store, `SELECT count(*) FROM identities WHERE issuer = $1`, i.url), 0)
}

func TestLink_Taken(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := newService(t, i.config)
	theirs, w := newWallet(t), newWallet(t)
	theirs.signIn(t, s)
	ok(t, call(i.signIn(t, s, nil)))
	in := w.signIn(t, s)
	b := beginLink(t, s, in)
	is(t, "another's person", s.Persons.FinishLink(t.Context(), at(in), b.flow, b.state, i.grant(b, nil)), account.ErrIdentityTaken)
	is(t, "another's wallet", theirs.link(t, s, in, ""), account.ErrIdentityTaken)
	if linked, err := s.Persons.Identities(t.Context(), in.Account.ID); err != nil || len(linked) != 1 {
		t.Errorf("the account has %v, %v", linked, err)
	}
}

// Who finds a browser signed in cannot give themselves a way in, nor take the owner's: the session is fresh or the password comes too.
func TestLink_Confirmed(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := newService(t, i.config, withPasswords(t))
	ann := must(s.Persons.SignUp(t.Context(), identity.Client{}, "Ann", "ann@example.com", password, ""))(t)
	bob := newWallet(t)
	in := bob.signIn(t, s)
	age := func(ago string) {
		t.Helper()
		var err error
		pgtest.Exec(t, s.Store, `UPDATE sessions SET created_at = now() - $1::interval`, ago)
		for _, one := range []*identity.SignedIn{ann, in} {
			one.Session, one.Account, err = s.Sessions.Get(t.Context(), one.Token)
			ok(t, err)
		}
	}
	age("11 minutes")
	try := func(of *identity.SignedIn, password string) []error {
		_, _, started := s.Persons.StartLink(t.Context(), with(at(of), password), own(of))
		linked := newWallet(t).link(t, s, of, password)
		unlinked := s.Persons.Unlink(t.Context(), with(at(of), password), own(of), bob.identity(t))
		return []error{started, linked, unlinked}
	}
	for name, c := range map[string]struct {
		of       *identity.SignedIn
		password string
		want     error
	}{
		"no password":                     {ann, "", identity.ErrSessionNotFresh},
		"a wrong password":                {ann, "wrong horse battery", identity.ErrPassword},
		"an account without one":          {in, "", identity.ErrSessionNotFresh},
		"a password of one that has none": {in, password, identity.ErrSessionNotFresh},
	} {
		for _, err := range try(c.of, c.password) {
			is(t, name, err, c.want)
		}
	}
	if errs := try(ann, password); errs[0] != nil || errs[1] != nil || !errors.Is(errs[2], account.ErrIdentityNotFound) {
		t.Errorf("with the password: %v", errs)
	}
	age("9 minutes")
	if errs := try(ann, ""); errs[0] != nil || errs[1] != nil || !errors.Is(errs[2], account.ErrIdentityNotFound) {
		t.Errorf("in a fresh session: %v", errs)
	}
}

func TestUnlink(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	s := newService(t, i.config)
	first, second := newWallet(t), newWallet(t)
	in := first.signIn(t, s)
	is(t, "the last way in", s.Persons.Unlink(t.Context(), at(in), own(in), first.identity(t)), account.ErrLastWayIn)
	ok(t, second.link(t, s, in, ""))
	elsewhere := first.signIn(t, s)
	ok(t, s.Persons.Unlink(t.Context(), at(in), own(in), first.identity(t)))
	is(t, "another session", call2(s.Sessions.Get(t.Context(), elsewhere.Token)), identity.ErrSignedOut)
	is(t, "the session that unlinked", call2(s.Sessions.Get(t.Context(), in.Token)), nil)
	is(t, "a second time", s.Persons.Unlink(t.Context(), at(in), own(in), first.identity(t)), account.ErrIdentityNotFound)
	if again := second.signIn(t, s); again.Account.ID != in.Account.ID {
		t.Error("the wallet that is left signs in to another account")
	}
	// What was unlinked is free: it makes an account of its own, and can be linked to another.
	fresh := first.signIn(t, s)
	if fresh.Account.ID == in.Account.ID || fresh.Account.Email != strings.ToLower(first.address)+"@eip155.invalid" {
		t.Errorf("the unlinked wallet signs in to %+v", fresh.Account)
	}
	if log := auditLog(t, s, in.Account.ID); log[len(log)-2] != "identity_unlinked||wallet "+first.address+"; all other sessions ended|203.0.113.7 " {
		t.Errorf("the audit log: %q", log)
	}
}

// An identity of a provider that the operator does not use any more, or of a chain without a node, is no way in.
func TestUnlink_UnusableLeft(t *testing.T) {
	t.Parallel()
	var node verdict
	s := newService(t, node.on(t))
	w := newWallet(t)
	in := w.signIn(t, s)
	for issuer, want := range map[string]error{
		"https://old.example": account.ErrLastWayIn, "eip155:1": account.ErrLastWayIn, "eip155:10": nil,
	} {
		subject := strings.ToLower(w.address)
		pgtest.Exec(t, s.Store, `DELETE FROM identities WHERE issuer <> 'eip155'`)
		pgtest.Exec(t, s.Store, `INSERT INTO identities (issuer, subject, account_id, created_at)
			VALUES ($1, $2, $3, now()), ('eip155', $2, $3, now()) ON CONFLICT DO NOTHING`, issuer, subject, in.Account.ID)
		is(t, issuer+" is left", s.Persons.Unlink(t.Context(), at(in), own(in), w.identity(t)), want)
	}
}
