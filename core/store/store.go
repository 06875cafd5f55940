// Package store has the store of each room over one database.
//
// A room's package has its tables and queries, and contains no domain rules. What must happen in one transaction over two rooms goes
// through the transaction of the lower one: identities and intents are below, events and screening are above identities, and quotes above intents.
package store

import (
	"intents.internal/core/store/feeds"
	"intents.internal/core/store/identities"
	"intents.internal/core/store/intents"
	"intents.internal/core/store/postgres"
	"intents.internal/core/store/quotes"
	"intents.internal/core/store/registries"
	"intents.internal/core/store/retention"
	"intents.internal/core/store/screening"
	"intents.internal/core/store/webhooks"
)

// Rooms are the stores of a database, for those who make the services of several rooms.
type Rooms struct {
	*postgres.DB

	Identities *identities.Store
	Registry   *registries.Store
	Intents    *intents.Store
	Feed       *feeds.Store
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
	made, feed := intents.New(db), feeds.New(db)
	return &Rooms{
		DB: db, Identities: identities.New(db), Registry: registries.New(db), Intents: made, Feed: feed, Webhooks: webhooks.New(db, feed),
		Quotes: quotes.New(db, made), Screening: screening.New(db), Retention: retention.New(db),
	}, nil
}
