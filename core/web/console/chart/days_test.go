package chart_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"intents.internal/core/web/console/chart"
)

func TestDays(t *testing.T) {
	t.Parallel()
	var days [chart.DaysShown]chart.DayCounts
	days[0], days[13] = chart.DayCounts{Done: 7}, chart.DayCounts{Done: 20, Open: 3, Other: 1}
	c := chart.Days(days, now)
	if want := "Of the transfers made in the last 14 days 27 are done, 3 are open, and 1 ended otherwise."; c.Summary != want {
		t.Errorf("summary %q, want %q", c.Summary, want)
	}
	if diff := cmp.Diff([]int64{0, 10, 20, 30, 40}, numbers(c)); diff != "" {
		t.Errorf("axis (-want +got):\n%s", diff)
	}
	if n := len(c.Columns); n != 14 || len(c.Columns[0].Bars) != 1 || len(c.Columns[1].Bars) != 0 || len(c.Columns[13].Bars) != 3 {
		t.Fatalf("%d columns: %+v", n, c.Columns)
	}
	if got := c.Columns[13].Label; got != "21 Nov: 20 done, 3 open, 1 ended otherwise" {
		t.Errorf("column %q", got)
	}
}
