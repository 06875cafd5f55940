// Package intents is what users do with transfer intents: create, find, cancel, preflight and refund them, and report their
// transactions. The API and the console call the same operations. It has the rows of intents, of their events and transactions, and of what
// the watcher of each chain has read.
//
// Package transfer decides what an intent is and becomes. Who may call an operation is decided before.
package intents

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"intents.internal/core/registry"
	"intents.internal/core/rpc"
	"intents.internal/core/screening"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/wire"
)

// Config is what the service needs.
type Config struct {
	Store    *Store
	Registry *registry.LiveRegistry
	// Chains has the nodes of the chains; nil if no chain has nodes.
	Chains *rpc.Client
	// Screening refuses accounts that the operator does not serve; nil for none.
	Screening *screening.Screen
	// Created is called with each intent that Create made or found; nil for no call. It must not block.
	Created func(*transfer.Intent)
	// Reported is called after a client has reported a new transaction of an intent; nil for no call. It must not block.
	Reported func(source caip.ChainID, accountID, transferID uuid.UUID, hash common.Hash)
}

// Service is safe for concurrent use.
type Service struct{ Config }

// New returns a service.
func New(config Config) *Service { return &Service{config} }

// EnvironmentError is returned for a chain of another environment than the API key's.
type EnvironmentError struct {
	Chain            caip.ChainID
	Environment, Key network.Environment
	// Path is a JSON Pointer to the first member on the chain in a batch, empty for one intent.
	Path string
}

func (e *EnvironmentError) Error() string {
	return fmt.Sprintf("chain %s is a %s chain and the key is a %s key", e.Chain, e.Environment, e.Key)
}

// StatusError is returned with the status of an intent that does not allow what was asked: transfer.ErrTransition, transfer.ErrNotSendable,
// transfer.ErrSent, ErrExecuted or ErrTooManyAttempts.
type StatusError struct {
	Status transfer.Status
	Err    error
}

func (e *StatusError) Error() string { return fmt.Sprintf("the intent is %s: %v", e.Status, e.Err) }

// Unwrap returns why the status does not allow it.
func (e *StatusError) Unwrap() error { return e.Err }

// CheckEnvironment returns an *EnvironmentError for the first chain in the request that keys of the environment may not use.
func CheckEnvironment(request wire.TransferRequest, known *registry.Snapshot, environment network.Environment) error {
	if wrong, ok := transfer.WrongEnvironment(request, known, environment); ok {
		return &EnvironmentError{Chain: wrong.ID, Environment: wrong.Environment, Key: environment}
	}
	return nil
}

// Find returns an account's intent by its UUID or its order id. It returns ErrTransferNotFound for an intent of another
// account, as for one that does not exist.
func (s *Service) Find(ctx context.Context, accountID uuid.UUID, name string) (*transfer.Intent, error) {
	if orderID, ok := transfer.ParseHash(name); ok {
		return s.Store.TransferByOrder(ctx, accountID, orderID)
	}
	id, err := uuid.Parse(name)
	if err != nil || len(name) != 36 { // Parse accepts other spellings too
		return nil, ErrTransferNotFound
	}
	return s.Store.Transfer(ctx, accountID, id)
}

// FindForChange is Find for a caller that wants to change the intent. It returns an *EnvironmentError if the caller's key is not of
// the source chain's environment.
func (s *Service) FindForChange(ctx context.Context, by transfer.Caller, name string) (*transfer.Intent, error) {
	intent, err := s.Find(ctx, by.AccountID, name)
	if err != nil {
		return nil, err
	}
	if intent.Environment != by.Environment {
		return nil, &EnvironmentError{Chain: intent.Source.Account.Chain, Environment: intent.Environment, Key: by.Environment}
	}
	return intent, nil
}
