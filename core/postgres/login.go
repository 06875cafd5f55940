package postgres

import (
	"cmp"
	"context"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// login is whom new connections of a pool are made as, once that has changed. The zero value changes nothing.
type login struct{ now atomic.Pointer[credentials] }

type credentials struct{ user, password string }

// put gives a connection that is about to be made the credentials of now.
func (l *login) put(_ context.Context, c *pgx.ConnConfig) error {
	if now := l.now.Load(); now != nil {
		// Without a name a database is called like the user who connects.
		c.Database, c.User, c.Password = cmp.Or(c.Database, c.User), now.user, now.password
	}
	return nil
}

func (l *login) set(url string) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return errBadURL // err may tell the password
	}
	l.now.Store(&credentials{config.User, config.Password})
	return nil
}

// SetLogins has new connections made as the users of these URLs and with their passwords; of the replica's, too, where there is
// one. Connections that are open stay as they are. What the URLs say besides is not looked at.
func (s *Store) SetLogins(url, readURL string) error {
	if err := s.login.set(url); err != nil || s.replica == nil {
		return err
	}
	return s.replicaLogin.set(readURL)
}
