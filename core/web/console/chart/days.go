package chart

import (
	"fmt"
	"time"
)

// DaysShown is the number of days of Days, the one that has begun included.
const DaysShown = 14

// DaysSince is the first moment that Days shows.
func DaysSince(now time.Time) time.Time {
	return now.UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-DaysShown)
}

// DayCounts are the intents of a day by what has become of them.
type DayCounts struct{ Done, Open, Other int64 }

// Days shows the intents of each of the last days: Done as accepted, Open as limited and Other as refused. It has no limit and no rows.
func Days(days [DaysShown]DayCounts, now time.Time) Chart {
	c := Chart{ID: "days", Title: "Transfers a day"}
	intervals := make([]interval, DaysShown)
	var sum DayCounts
	for n, d := range days {
		intervals[n].busiest.Counts = Counts{d.Done, d.Open, d.Other}
		sum = DayCounts{sum.Done + d.Done, sum.Open + d.Open, sum.Other + d.Other}
	}
	l := layout{columns: DaysShown, top: ceiling(intervals, 0)}
	for number := int64(0); number <= l.top; number += l.top / 4 {
		c.Ticks = append(c.Ticks, Tick{Y: l.y(number), Number: number})
	}
	for n, i := range intervals {
		from := DaysSince(now).AddDate(0, 0, n)
		column := l.column(n, "", i.busiest.Counts)
		column.Label = fmt.Sprintf("%s: %d done, %d open, %d ended otherwise", from.Format("2 Jan"), days[n].Done, days[n].Open, days[n].Other)
		c.Columns = append(c.Columns, column)
		c.Times = append(c.Times, Time{X: l.middle(n), Text: from.Format("2 Jan"), Minor: n%2 == 0})
	}
	c.Summary = fmt.Sprintf("Of the transfers made in the last %d days %d are done, %d are open, and %d ended otherwise.", DaysShown, sum.Done, sum.Open, sum.Other)
	return c
}
