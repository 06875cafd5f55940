package console

import (
	"context"
	"net/http"
	"time"

	"intents.internal/core/feed"
	"intents.internal/core/transfer"
	"intents.internal/core/web/console/chart"
)

const (
	// expiresSoon is how near the deadline of a transfer is that needs a hand. It is well below the default deadline of an hour.
	expiresSoon = 15 * time.Minute
	// handRows bounds the transfers of one kind that need a hand.
	handRows = 5
	// partTimeout bounds each part of the page, which may wait for long lists of the account that others read.
	partTimeout = 1200 * time.Millisecond
)

// dayRow is a day as the table of the overview shows it, with how many intents are in each of transfer.Statuses.
type dayRow struct {
	Day    time.Time
	Text   string
	Counts []int
}

// overview is the console's first page.
type overview struct {
	Days     chart.Chart
	Statuses []transfer.Status
	Rows     []dayRow
	// Whole is false if there are more intents than are counted.
	Whole bool
	Usage chart.Chart
	// Expiring and Refundable are intents that need a hand.
	Expiring, Refundable []transferRow
	// Webhooks are those that fail or are disabled.
	Webhooks []webhookView
	HasKeys  bool
	// DaysLate, UsageLate and HandLate mean that a part was not read in time.
	DaysLate, UsageLate, HandLate bool
}

// Quiet reports whether nothing needs a hand.
func (o overview) Quiet() bool {
	return !o.HandLate && len(o.Expiring)+len(o.Refundable)+len(o.Webhooks) == 0
}

// showOverview answers GET /console with what happens in the shown environment, and what needs a hand there. All its reads are bounded.
func (c *console) showOverview(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	ctx, account, now := r.Context(), user.principal.Account, c.Transfers.Now()
	of := feed.Owner{AccountID: account.ID, Environment: user.environment}
	keys, err := c.Identities.Keys(ctx, account.ID)
	if err != nil {
		return err
	}
	shown := overview{Statuses: transfer.Statuses, HasKeys: len(keys) > 0}
	if shown.DaysLate, err = inTime(ctx, func(ctx context.Context) error { return c.fillDays(ctx, of, &shown, now) }); err != nil {
		return err
	}
	shown.UsageLate, err = inTime(ctx, func(ctx context.Context) error {
		usage, err := c.Identities.MinuteUsage(ctx, of.AccountID, of.Environment, chart.HourSince(now))
		shown.Usage = chart.Hour(usage, int(time.Duration(account.Limit.Requests)*time.Minute/account.Limit.Period), now)
		return err
	})
	if err != nil {
		return err
	}
	if shown.HandLate, err = inTime(ctx, func(ctx context.Context) error { return c.fillHand(ctx, of, &shown, now) }); err != nil {
		return err
	}
	return c.render(w, r, user, "overview", view{Title: "Overview", Section: "overview", Form: f, Body: shown})
}

// inTime reads a part of the page. late means that it took too long, which is no error of the page.
func inTime(ctx context.Context, read func(context.Context) error) (late bool, err error) {
	part, cancel := context.WithTimeout(ctx, partTimeout)
	defer cancel()
	if err = read(part); err != nil && part.Err() != nil && ctx.Err() == nil {
		return true, nil
	}
	return false, err
}

// fillDays reads the intents a day.
func (c *console) fillDays(ctx context.Context, of feed.Owner, shown *overview, now time.Time) error {
	since := chart.DaysSince(now)
	counts, whole, err := c.Transfers.DayCounts(ctx, of.AccountID, of.Environment, since)
	if err != nil {
		return err
	}
	var days [chart.DaysShown]chart.DayCounts
	shown.Whole = whole
	for n := range days {
		day := since.AddDate(0, 0, n)
		row := dayRow{Day: day, Text: day.Format("2 Jan"), Counts: make([]int, len(transfer.Statuses))}
		for _, count := range counts {
			if !count.Day.Equal(day) {
				continue
			}
			for i, status := range transfer.Statuses {
				if status == count.Status {
					row.Counts[i] += count.Count
				}
			}
			switch count.Status {
			case transfer.Confirmed, transfer.Filled:
				days[n].Done += int64(count.Count)
			case transfer.Created, transfer.Submitted:
				days[n].Open += int64(count.Count)
			default:
				days[n].Other += int64(count.Count)
			}
		}
		shown.Rows = append(shown.Rows, row)
	}
	shown.Days = chart.Days(days, now)
	return nil
}

// fillHand reads what needs a hand.
func (c *console) fillHand(ctx context.Context, of feed.Owner, shown *overview, now time.Time) error {
	expiring, err := c.Transfers.Expiring(ctx, of.AccountID, of.Environment, now.Add(expiresSoon), handRows)
	if err != nil {
		return err
	}
	refundable, err := c.Transfers.Refundables(ctx, of.AccountID, of.Environment, handRows)
	if err != nil {
		return err
	}
	for _, intent := range expiring {
		shown.Expiring = append(shown.Expiring, c.transferRow(intent))
	}
	for _, intent := range refundable {
		shown.Refundable = append(shown.Refundable, c.transferRow(intent))
	}
	if c.WebhookRules == nil {
		return nil
	}
	endpoints, err := c.Webhooks.Webhooks(ctx, of)
	for _, e := range endpoints {
		if !e.Enabled || e.FailingSince != nil {
			shown.Webhooks = append(shown.Webhooks, newWebhookView(e))
		}
	}
	return err
}
