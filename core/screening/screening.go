// Package screening refuses the accounts that the operator does not serve: one list, one check, one answer.
//
// It decides by the files that the operator names and by nothing else, and asks nobody. Its answers, logs and metrics have neither an address
// nor a label; only the hits in the database have.
package screening

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"intents.internal/core/screening/list"
	"intents.internal/core/transfer"
	"intents.internal/pkg/caip"
	"intents.internal/pkg/network"
	"intents.internal/pkg/telemetry"
)

const (
	// TestAddress is listed in the environment test wherever screening is on. Nobody has its key.
	TestAddress = "0x5C7EE5C7Ee5c7ee5c7eE5C7Ee5C7ee5C7Ee5C7Ee"
	testLabel   = "test address"
)

// Config is what screening needs.
type Config struct {
	Store *Store
	// Paths are the files of the list.
	Paths []string
	// Contact is what a refusal ends with, empty for nothing.
	Contact string
	// MaxAge is above which age the list is too old; it is only shown.
	MaxAge  time.Duration
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Screen is the check. A nil Screen refuses nobody. It is safe for concurrent use.
type Screen struct {
	Config
	list    atomic.Pointer[list.List]
	files   files
	hits    hits
	metrics *metrics
}

// Open reads the list. It returns a *list.FaultError for a file that is unreadable, malformed or empty: who was told to have a list does not
// start without it. An empty file that the operator has accepted is taken.
func Open(ctx context.Context, config Config) (*Screen, error) {
	s := &Screen{Config: config}
	s.files.seen = stat(config.Paths)
	read, err := list.ReadAll(config.Paths)
	if err != nil {
		return nil, err
	}
	if err := s.takeEmpty(ctx, read); err != nil {
		return nil, err
	}
	s.take(read)
	s.metrics = newMetrics(config.Metrics, s)
	return s, nil
}

// NotAllowedError is returned for accounts that are on the list. Its text names none.
type NotAllowedError struct {
	// Contact is Config.Contact.
	Contact string
	found   []found
}

type found struct {
	side           Side
	address, label string
	// item is the path of the item of a batch, empty for one intent.
	item string
}

func (e *NotAllowedError) Error() string { return "an account of the request is on the screening list" }

// Paths are the JSON Pointers to the accounts, the source's first.
func (e *NotAllowedError) Paths() []string {
	paths := make([]string, len(e.found))
	for n, f := range e.found {
		paths[n] = f.item + f.side.Path()
	}
	return paths
}

// AddItem adds what the list has of an item of a batch; path is the item's JSON Pointer. It returns an error of both, e of a first item being nil.
func (e *NotAllowedError) AddItem(path string, of *NotAllowedError) *NotAllowedError {
	if e == nil {
		e = &NotAllowedError{Contact: of.Contact}
	}
	for _, f := range of.found {
		f.item = path
		e.found = append(e.found, f)
	}
	return e
}

// party is an account that is asked for.
type party struct {
	side Side
	caip.AccountID
}

// Check returns a *NotAllowedError if one of an intent's accounts is on the list. It records nothing: Refused does.
func (s *Screen) Check(stage Stage, environment network.Environment, source, destination caip.AccountID) error {
	return s.check(stage, environment, party{SourceSide, source}, party{DestinationSide, destination})
}

// CheckIntent is Check for an intent that exists.
func (s *Screen) CheckIntent(stage Stage, i *transfer.Intent) error {
	return s.Check(stage, i.Environment, i.Source.Account, i.Destination.Account)
}

// CheckWallet is Check for the wallet of a sign-in, on the chain that its message names.
func (s *Screen) CheckWallet(wallet caip.AccountID) error {
	return s.check(AtSignIn, "", party{WalletSide, wallet})
}

// check looks all parties up in one state of the list.
func (s *Screen) check(stage Stage, environment network.Environment, parties ...party) error {
	if s == nil {
		return nil
	}
	listed := s.list.Load()
	var refused *NotAllowedError
	for _, p := range parties {
		label, ok := listed.Find(p.AccountID)
		if !ok && environment == network.Test && p.Address == TestAddress {
			label, ok = testLabel, true
		}
		if !ok {
			continue
		}
		if refused == nil {
			refused = &NotAllowedError{Contact: s.Contact}
		}
		refused.found = append(refused.found, found{side: p.side, address: p.Address, label: label})
	}
	if refused == nil {
		s.metrics.clear[stage].Inc()
		return nil
	}
	return refused
}

// About is who met the list, and at what.
type About struct {
	Stage            Stage
	AccountID, KeyID uuid.UUID
	Environment      network.Environment
	IntentID         uuid.UUID
}

// AboutIntent is about an intent that exists, for whoever asks for it.
func AboutIntent(stage Stage, i *transfer.Intent) About {
	return About{Stage: stage, AccountID: i.AccountID, Environment: i.Environment, IntentID: i.ID}
}

// Refused records a *NotAllowedError with what it is about, and returns every error as it is. It does not block.
func (s *Screen) Refused(ctx context.Context, about About, err error) error {
	refused, ok := errors.AsType[*NotAllowedError](err)
	if s == nil || !ok {
		return err
	}
	outcome, request, now := s.metrics.listed, telemetry.OfRequest(ctx, "request_id"), s.Store.Now()
	for _, f := range refused.found {
		if f.label == testLabel {
			outcome = s.metrics.test
		}
		h := Hit{
			AccountID: about.AccountID, KeyID: about.KeyID, Environment: about.Environment, Stage: about.Stage, Side: f.side,
			Address: f.address, Label: f.label, IntentID: about.IntentID, RequestID: request, At: now,
		}
		if !s.hits.add(h, f == refused.found[0] && about.Stage != OnChain) {
			s.metrics.dropped.Inc()
		}
	}
	outcome[about.Stage].Inc()
	return err
}
