package console

import (
	"context"
	"net/http"
	"slices"
	"time"

	"intents.internal/core/feed"
	"intents.internal/core/transfer"
	"intents.internal/core/web/console/chart"
	"intents.internal/pkg/caip"
)

const (
	// expiresSoon is how near the deadline of a transfer is that needs a hand. It is well below the default deadline of an hour.
	expiresSoon = 15 * time.Minute
	// handRows bounds the transfers of one kind that need a hand.
	handRows = 5
	// partTimeout bounds each part of the page, which may wait for long lists of the account that others read.
	partTimeout = 1200 * time.Millisecond
	// volumeDays are the days whose volumes are shown, and volumeRows how many tokens.
	volumeDays, volumeRows = 30, 10
)

// doneStatuses are those of intents that have done what they are for, so far as the overview is concerned.
var doneStatuses = []transfer.Status{transfer.Confirmed, transfer.Filled}

// dayRow is a day as the table of the overview shows it, with how many intents are in each of transfer.Statuses.
type dayRow struct {
	Day    time.Time
	Text   string
	Counts []int
}

// volumeRow is a token with what was sent of it.
type volumeRow struct {
	Token         caip.AccountID
	Symbol, Chain string
	Count         int
	Sent          string
	// Level is the number of transfers in percent of that of the first token.
	Level int
}

// overview is the console's first page.
type overview struct {
	Days     chart.Chart
	Statuses []transfer.Status
	Rows     []dayRow
	// Whole is false if there are more intents than are counted.
	Whole bool
	// Volumes are of the last VolumeDays. AllVolumes is false if there are more intents than are added up.
	Volumes    []volumeRow
	AllVolumes bool
	Usage      chart.Chart
	// Expiring and Refundable are intents that need a hand.
	Expiring, Refundable []transferRow
	// Webhooks are those that fail or are disabled.
	Webhooks []webhookView
	HasKeys  bool
	// DaysLate, VolumesLate, UsageLate and HandLate mean that a part was not read in time.
	DaysLate, VolumesLate, UsageLate, HandLate bool
}

// VolumeDays is how many days the volumes are of.
func (o overview) VolumeDays() int { return volumeDays }

// Quiet reports whether nothing needs a hand.
func (o overview) Quiet() bool {
	return !o.HandLate && len(o.Expiring)+len(o.Refundable)+len(o.Webhooks) == 0
}

// showOverview answers GET /console with what happens in the shown environment, and what needs a hand there. All its reads are bounded.
func (c *console) showOverview(w http.ResponseWriter, r *http.Request, user currentUser, f *form) error {
	ctx, account, now := r.Context(), user.principal.Account, c.Now()
	of := feed.Owner{AccountID: account.ID, Environment: user.environment}
	keys, err := c.Identities.Keys(ctx, account.ID)
	if err != nil {
		return err
	}
	shown := overview{Statuses: transfer.Statuses, HasKeys: len(keys) > 0}
	if shown.DaysLate, err = inTime(ctx, func(ctx context.Context) error { return c.fillDays(ctx, of, &shown, now) }); err != nil {
		return err
	}
	if shown.VolumesLate, err = inTime(ctx, func(ctx context.Context) error { return c.fillVolumes(ctx, of, &shown, now) }); err != nil {
		return err
	}
	shown.UsageLate, err = inTime(ctx, func(ctx context.Context) error {
		usage, _, err := c.Identities.AccountUsage(ctx, of.AccountID, of.Environment, chart.HourSince(now), time.Minute)
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
			switch {
			case slices.Contains(doneStatuses, count.Status):
				days[n].Done += int64(count.Count)
			case count.Status == transfer.Created, count.Status == transfer.Submitted:
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

// fillVolumes reads what was sent, by token.
func (c *console) fillVolumes(ctx context.Context, of feed.Owner, shown *overview, now time.Time) error {
	volumes, whole, err := c.Transfers.TokenVolumes(ctx, of.AccountID, of.Environment, now.AddDate(0, 0, -volumeDays), doneStatuses, volumeRows)
	shown.AllVolumes = whole
	for _, v := range volumes {
		row := volumeRow{
			Token: v.Token, Symbol: short(v.Token.Address), Chain: c.chainName(v.Token.Chain), Count: v.Count, Sent: c.amountOf(v.Sum, v.Token),
			Level: 100 * v.Count / volumes[0].Count,
		}
		if known, ok := c.Registry.Current().Token(v.Token); ok {
			row.Symbol = known.Symbol
		}
		shown.Volumes = append(shown.Volumes, row)
	}
	return err
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
	if !c.Webhooks.Configured() {
		return nil
	}
	endpoints, err := c.Webhooks.List(ctx, of)
	for _, e := range endpoints {
		if !e.Enabled || e.FailingSince != nil {
			shown.Webhooks = append(shown.Webhooks, newWebhookView(e))
		}
	}
	return err
}
