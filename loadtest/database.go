package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"intents.internal/core/postgres"
	"intents.internal/core/rooms"
	"intents.internal/pkg/testkit/embedded"
)

// database is a private, durable and migrated Postgres.
type database struct {
	server *embedded.Postgres
	store  *rooms.Rooms
	dir    string
}

func openDatabase(ctx context.Context) (d *database, err error) {
	d = &database{}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	if d.dir, err = os.MkdirTemp("", "loadtest-"); err != nil {
		return d, err
	}
	fmt.Println("starting a private Postgres")
	d.server, err = embedded.StartPostgres(ctx, embedded.PostgresConfig{Dir: d.dir, Settings: []string{"max_connections=400"}})
	if err != nil {
		return d, err
	}
	fmt.Println("using", d.server.Source)
	if d.store, err = rooms.Open(d.server.URL, postgres.Options{StatementTimeout: 10 * time.Minute}); err != nil {
		return d, err
	}
	_, err = d.store.Migrate(ctx)
	return d, err
}

func (d *database) close() error {
	var errs []error
	if d.store != nil {
		errs = append(errs, d.store.Close())
	}
	if d.server != nil {
		errs = append(errs, d.server.Stop())
	}
	return errors.Join(append(errs, os.RemoveAll(d.dir))...)
}
