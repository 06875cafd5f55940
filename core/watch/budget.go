package watch

import (
	"time"

	"github.com/google/uuid"

	"intents.internal/core/intents"
	"intents.internal/pkg/tokenbucket"
)

const (
	// lookUpsPerDay is how many look-ups of reported transactions an account has on a chain in a day, each of a few calls. Beyond it a hash
	// is found in the lists of new blocks' transactions alone, which cost the same for any number of hashes.
	lookUpsPerDay = 10_000
	// overBudgetRetry is when an attempt beyond that is due again.
	overBudgetRetry = time.Hour
	// lookingAccounts bounds the accounts whose look-ups are counted.
	lookingAccounts = 1 << 14
)

// mayLookUp counts a look-up of an account, and reports whether it had one left.
func (l *loop) mayLookUp(account uuid.UUID) bool {
	return l.lookedUp.Take(tokenbucket.Bucket{Name: account.String() + " " + l.id.String(), Rule: l.lookUpRule}) == 0
}

// withinBudget returns the due attempts that may be looked up, and the others as due later.
func (l *loop) withinBudget(due []intents.Followed) (within []intents.Followed, later []intents.Observation) {
	now := l.Store.Now()
	for _, d := range due {
		if l.mayLookUp(d.AccountID) {
			within = append(within, d)
			continue
		}
		d.DueAt = now.Add(overBudgetRetry)
		later = append(later, d.Observation)
	}
	return within, later
}
