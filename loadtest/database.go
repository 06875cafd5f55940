package main

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"os"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/intent/chain"
	"intents.internal/core/intent/registry"
	"intents.internal/core/intent/token"
	"intents.internal/core/intent/transfer"
	"intents.internal/core/store/postgres"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/wire"
)

// database is a private, durable and migrated Postgres.
type database struct {
	server *embedded.Postgres
	store  *postgres.Store
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
	if d.store, err = postgres.Open(d.server.URL, postgres.Options{StatementTimeout: 10 * time.Minute}); err != nil {
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

// sepolia is a registry with one chain and its native asset.
func sepolia() *registry.Snapshot {
	id := caip.EIP155Chain(11155111)
	return registry.New(1,
		[]chain.Chain{{ID: id, Name: "Sepolia", Environment: network.Test, Domain: 11155111}},
		[]token.Definition{{ID: caip.AccountID{Chain: id, Address: token.NativeAddress}, Symbol: "ETH", Decimals: 18}},
	)
}

// newIntent creates the n-th intent of an account with core's own code.
func newIntent(accountID uuid.UUID, n int, snapshot *registry.Snapshot) (*transfer.Intent, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return nil, err
	}
	c := snapshot.Chains[0].ID
	native := snapshot.Tokens[0].ID
	return transfer.New(id, transfer.Caller{AccountID: accountID, KeyID: accountID, Environment: network.Test}, wire.TransferRequest{
		Source: wire.Leg{
			Account: caip.AccountID{Chain: c, Address: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"},
			Token:   native, Amount: big.NewInt(int64(n) + 1).String(),
		},
		Destination: wire.Leg{Account: caip.AccountID{Chain: c, Address: "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"}},
		Reference:   fmt.Sprintf("order-%d", n),
	}, snapshot)
}
