package account_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/pkg/network"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func newKey(t *testing.T, request account.KeyRequest) *account.Key {
	t.Helper()
	key, _, err := account.NewKey(uuid.New(), request, noon)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func TestChange(t *testing.T) {
	t.Parallel()
	later := noon.Add(time.Minute)
	for name, c := range map[string]struct {
		change account.KeyChange
		want   func(*account.Key)
		detail string
	}{
		"nothing":   {account.KeyChange{}, func(*account.Key) {}, ""},
		"renamed":   {account.KeyChange{Name: new(" b\n")}, func(k *account.Key) { k.Name = "b" }, `name "a" → "b"`},
		"same name": {account.KeyChange{Name: new("a ")}, func(*account.Key) {}, ""},
		"disabled":  {account.KeyChange{Enabled: new(false)}, func(k *account.Key) { k.Enabled = false }, "disabled"},
		"enabled":   {account.KeyChange{Enabled: new(true)}, func(*account.Key) {}, ""},
		"expiry moved": {
			account.KeyChange{ExpiresIn: new(time.Hour)},
			func(k *account.Key) { k.ExpiresAt = new(later.Add(time.Hour)) }, "expires 2026-11-21T13:01:00Z",
		},
		"no expiry": {account.KeyChange{ExpiresIn: new(time.Duration)}, func(k *account.Key) { k.ExpiresAt = nil }, "never expires"},
		"all": {
			account.KeyChange{Name: new("<b>\t\""), Enabled: new(false), ExpiresIn: new(time.Second)},
			func(k *account.Key) { k.Name, k.Enabled, k.ExpiresAt = "<b>\t\"", false, new(later.Add(time.Second)) },
			`expires 2026-11-21T12:01:01Z, name "a" → "<b>\t\"", disabled`,
		},
	} {
		got := newKey(t, account.KeyRequest{Name: "a", ExpiresIn: 24 * time.Hour})
		want := *got
		c.want(&want)
		if c.detail != "" {
			want.UpdatedAt = later
		}
		detail, err := got.Change(c.change, later)
		if err != nil || detail != c.detail {
			t.Errorf("%s: Change = %q, %v; want %q", name, detail, err, c.detail)
		}
		if diff := cmp.Diff(&want, got); diff != "" {
			t.Errorf("%s: the key differs (-want +got):\n%s", name, diff)
		}
	}
	var invalid *account.InvalidError
	if _, err := newKey(t, account.KeyRequest{Name: "a"}).Change(account.KeyChange{Name: new(" ")}, later); !errors.As(err, &invalid) || invalid.Field != "name" {
		t.Errorf("an empty name: %v", err)
	}
}

func TestRotate(t *testing.T) {
	t.Parallel()
	later := noon.Add(time.Minute)
	for name, c := range map[string]struct {
		grace     time.Duration
		expiresIn time.Duration
		dies      *time.Time
		rotated   *time.Time
	}{
		"no grace":                    {0, 0, nil, nil},
		"no grace, expiring":          {0, time.Hour, new(noon.Add(time.Hour)), nil},
		"a grace":                     {time.Hour, 0, new(later.Add(time.Hour)), &later},
		"a grace before the expiry":   {time.Hour, 2 * time.Hour, new(later.Add(time.Hour)), &later},
		"a grace that exceeds expiry": {time.Hour, 10 * time.Minute, new(noon.Add(10 * time.Minute)), &later},
	} {
		old := newKey(t, account.KeyRequest{Name: "a", Environment: network.Live, ExpiresIn: c.expiresIn})
		old.Enabled, old.Limit, old.LimitBucket = false, account.Limit{Requests: 7, Period: time.Second}, uuid.New()
		before := *old
		next, text, err := old.Rotate(c.grace, later)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		wantNext := before
		wantNext.ID, wantNext.Hash, wantNext.Start, wantNext.CreatedAt, wantNext.UpdatedAt = next.ID, text.Hash(), text.Start(), later, later
		if diff := cmp.Diff(&wantNext, next); diff != "" {
			t.Errorf("%s: the next key differs (-want +got):\n%s", name, diff)
		}
		if next.ID == before.ID || next.Hash == before.Hash || text.Environment() != network.Live {
			t.Errorf("%s: the next key is the old one, or of another environment", name)
		}
		wantOld := before
		wantOld.ExpiresAt, wantOld.RotatedAt = c.dies, c.rotated
		if c.rotated != nil {
			wantOld.UpdatedAt = later
		}
		if diff := cmp.Diff(&wantOld, old); diff != "" {
			t.Errorf("%s: the old key differs (-want +got):\n%s", name, diff)
		}
	}
}

func TestRotate_Once(t *testing.T) {
	t.Parallel()
	key := newKey(t, account.KeyRequest{Name: "a", ExpiresIn: time.Hour})
	if key.LimitBucket != key.ID {
		t.Errorf("a new key spends the bucket %s, its id is %s", key.LimitBucket, key.ID)
	}
	if _, _, err := key.Rotate(0, *key.ExpiresAt); !errors.Is(err, account.ErrKeyExpired) {
		t.Errorf("rotate at the expiry: %v", err)
	}
	next, _, err := key.Rotate(time.Minute, noon)
	if err != nil {
		t.Fatal(err)
	}
	graced := *key
	for _, grace := range []time.Duration{0, time.Hour} {
		if _, _, err := key.Rotate(grace, noon); !errors.Is(err, account.ErrKeyRotated) {
			t.Errorf("rotate again with grace %s: %v", grace, err)
		}
	}
	for _, lifetime := range []time.Duration{0, time.Second, time.Hour} {
		if _, err := key.Change(account.KeyChange{ExpiresIn: &lifetime}, noon); !errors.Is(err, account.ErrKeyRotated) {
			t.Errorf("give a rotated key %s: %v", lifetime, err)
		}
	}
	if diff := cmp.Diff(&graced, key); diff != "" {
		t.Errorf("refusals change the rotated key (-before +after):\n%s", diff)
	}
	if _, err := key.Change(account.KeyChange{Enabled: new(false)}, noon); err != nil || key.Enabled {
		t.Errorf("disable a rotated key: %v", err)
	}
	third, _, err := next.Rotate(0, noon)
	if err != nil || third.LimitBucket != key.ID {
		t.Errorf("the third of the line spends the bucket %s, want %s; %v", third.LimitBucket, key.ID, err)
	}
}

func TestParseGracePeriod(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int64]time.Duration{0: 0, 1: time.Second, 86400: 24 * time.Hour} {
		if got, err := account.ParseGracePeriod(seconds); got != want || err != nil {
			t.Errorf("ParseGracePeriod(%d) = %s, %v", seconds, got, err)
		}
	}
	for _, seconds := range []int64{-1, 86401, 1 << 62, -1 << 63} {
		var invalid *account.InvalidError
		if _, err := account.ParseGracePeriod(seconds); !errors.As(err, &invalid) || invalid.Field != "gracePeriod" {
			t.Errorf("ParseGracePeriod(%d): %v", seconds, err)
		}
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	for want, request := range map[string]account.KeyRequest{
		"test key, never expires":                {Name: "a"},
		"live key, expires 2026-11-21T13:00:00Z": {Name: "a", Environment: network.Live, ExpiresIn: time.Hour},
	} {
		if got := newKey(t, request).Describe(); got != want {
			t.Errorf("Describe = %q, want %q", got, want)
		}
	}
}
