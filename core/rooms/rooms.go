// Package rooms opens the rows of all rooms over one database.
//
// What must happen in one transaction over two rooms goes through the transaction of the lower one: access, mail and watched are below all
// others, feed below intents and webhooks, and intents below quotes.
package rooms

import (
	"intents.internal/core/feed"
	"intents.internal/core/identity"
	"intents.internal/core/intents"
	"intents.internal/core/mail"
	"intents.internal/core/postgres"
	"intents.internal/core/quotes"
	"intents.internal/core/registry"
	"intents.internal/core/retention"
	"intents.internal/core/screening"
	"intents.internal/core/watch/watched"
	"intents.internal/core/webhooks"
)

// Rooms are the stores of a database, for those who make the services of several rooms.
type Rooms struct {
	*postgres.DB

	Mail       *mail.Store
	Identities *identity.Store
	Registry   *registry.Store
	Watched    *watched.Store
	Intents    *intents.Store
	Feed       *feed.Store
	Webhooks   *webhooks.Store
	Quotes     *quotes.Store
	Screening  *screening.Store
	Retention  *retention.Store
}

// Open prepares the stores of a Postgres URL. They connect on first use, so Open does not fail for a database that is down. Close
// closes all of them.
func Open(url string, o postgres.Options) (*Rooms, error) {
	db, err := postgres.Open(url, o)
	if err != nil {
		return nil, err
	}
	made, feed := intents.NewStore(db), feed.NewStore(db)
	return &Rooms{
		DB: db, Mail: mail.NewStore(db), Identities: identity.NewStore(db), Registry: registry.NewStore(db), Watched: watched.NewStore(db), Intents: made, Feed: feed, Webhooks: webhooks.NewStore(db, feed),
		Quotes: quotes.NewStore(db, made), Screening: screening.NewStore(db), Retention: retention.New(db),
	}, nil
}
