package chart_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/identity/account"
	"intents.internal/core/web/console/chart"
)

var now = time.Date(2026, 11, 21, 7, 10, 42, 0, time.UTC)

// at is a minute with these requests.
func at(minute time.Time, accepted, limited, refused int64) account.UsageInterval {
	return account.UsageInterval{
		From: minute, Accepted: accepted, Limited: limited, Refused: refused,
		Busiest: account.Usage{Minute: minute, Accepted: accepted, Limited: limited, Refused: refused},
	}
}

func TestHour(t *testing.T) {
	t.Parallel()
	last, first := now.Truncate(time.Minute), chart.HourSince(now)
	c := chart.Hour([]account.UsageInterval{
		at(first.Add(-time.Minute), 1000, 0, 0), // before the hour
		at(first, 30, 0, 0), at(last, 50, 12, 3), at(last.Add(time.Minute), 1, 0, 0),
	}, 50, now)

	want := "95 requests in the last hour: 80 accepted, 12 over the limit, 3 refused. " +
		"The busiest minute was 07:10 UTC with 65; the limit is 50 a minute."
	if c.Summary != want {
		t.Errorf("summary %q, want %q", c.Summary, want)
	}
	if len(c.Columns) != 60 || len(c.Rows) != 60 || c.Rows[0].Text != "06:11" || c.Rows[59].Text != "07:10" {
		t.Fatalf("%d columns, %d rows: %+v", len(c.Columns), len(c.Rows), c.Rows)
	}
	// A minute without requests is there, with zeros and without bars.
	if diff := cmp.Diff(chart.Column{Label: "06:12 UTC: 0 accepted, 0 over the limit, 0 refused"}, c.Columns[1]); diff != "" {
		t.Errorf("an empty minute (-want +got):\n%s", diff)
	}
	if c.Rows[1].Counts != (chart.Counts{}) || c.Rows[59].Counts != (chart.Counts{Accepted: 50, Limited: 12, Refused: 3}) {
		t.Errorf("rows %+v, %+v", c.Rows[1], c.Rows[59])
	}
	// The parts stand on each other and the accepted ones of this minute end at the line of the limit.
	bars := c.Columns[59].Bars
	if len(bars) != 3 || bars[0].Kind != "accepted" || bars[1].Kind != "limited" || bars[2].Kind != "refused" {
		t.Fatalf("bars %+v", bars)
	}
	if bars[0].Y != c.LimitY {
		t.Errorf("50 accepted end at %v, the line of 50 stands at %v", bars[0].Y, c.LimitY)
	}
	for n := range bars[1:] {
		if gap := bars[n].Y - bars[n+1].Y - bars[n+1].Height; gap > 0.02 || gap < -0.02 {
			t.Errorf("bar %d stands %v above the one before", n+1, gap)
		}
	}
	if diff := cmp.Diff([]int64{0, 20, 40, 60, 80}, numbers(c)); diff != "" {
		t.Errorf("axis (-want +got):\n%s", diff)
	}
}

func TestDay(t *testing.T) {
	t.Parallel()
	hour := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	first := at(hour, 410, 0, 0)
	first.Busiest = account.Usage{Minute: hour.Add(3 * time.Minute), Accepted: 400}
	last := at(hour.Add(45*time.Minute), 7, 0, 1)
	last.Busiest.Minute = hour.Add(50 * time.Minute)
	c := chart.Day([]account.UsageInterval{first, last}, 50, now)
	if len(c.Columns) != 100 || len(c.Rows) != 25 || c.Rows[0].Text != "20 Nov 07:00" || c.Rows[24].Text != "21 Nov 07:00" {
		t.Fatalf("%d columns, %d rows from %s to %s", len(c.Columns), len(c.Rows), c.Rows[0].Text, c.Rows[len(c.Rows)-1].Text)
	}
	want := chart.Row{From: hour, Text: "20 Nov 09:00", Counts: chart.Counts{Accepted: 417, Refused: 1}, Busiest: 400}
	if diff := cmp.Diff(want, c.Rows[2]); diff != "" {
		t.Errorf("an hour (-want +got):\n%s", diff)
	}
	// A column shows its busiest minute, not the sum: the sum could not be compared with the limit.
	if got := c.Columns[8].Label; got != "busiest minute 09:03 UTC: 400 accepted, 0 over the limit, 0 refused" {
		t.Errorf("column %q", got)
	}
	if bar := c.Columns[8].Bars[0]; bar.Y != c.Ticks[len(c.Ticks)-1].Y {
		t.Errorf("400 reach %v, the axis ends at %+v", bar.Y, c.Ticks)
	}
}

func TestChart_Empty(t *testing.T) {
	t.Parallel()
	for _, c := range []chart.Chart{chart.Hour(nil, 50, now), chart.Day(nil, 50, now)} {
		for _, column := range c.Columns {
			if len(column.Bars) != 0 {
				t.Errorf("%s draws %+v of nothing", c.ID, column)
			}
		}
		if diff := cmp.Diff([]int64{0, 15, 30, 45, 60}, numbers(c)); diff != "" {
			t.Errorf("%s axis (-want +got):\n%s", c.ID, diff)
		}
	}
	if got := chart.Hour(nil, 50, now).Summary; got != "No requests in the last hour." {
		t.Errorf("summary %q", got)
	}
}

func numbers(c chart.Chart) (all []int64) {
	for _, tick := range c.Ticks {
		all = append(all, tick.Number)
	}
	return all
}
