// Package chart lays out a key's usage as stacked columns for the template that draws them: where each bar stands, what
// the axes say, and the same numbers in words and as a table. It draws nothing and reads no clock.
package chart

import (
	"fmt"
	"time"

	"intents.internal/core/identity/account"
)

// The sizes of a chart, in the units of its view box.
const (
	Width  = 720
	Height = 240

	left   = 44.0 // beside the columns, for the numbers of the axis
	top    = 14.0
	bottom = 34.0 // below the columns, for the times
	gap    = 0.25 // of a column's width
)

// Chart is what a template draws.
type Chart struct {
	// ID sets this chart's anchors apart from those of others on the same page.
	ID      string
	Title   string
	Summary string
	Columns []Column
	Ticks   []Tick
	Times   []Time
	// LimitY is where the line of the limit stands, Limit what it says, in requests a minute.
	LimitY float64
	Limit  int64
	// RowHead names the first column of the table.
	RowHead string
	// Busiest tells whether rows cover more than a minute and so have a busiest one.
	Busiest bool
	Rows    []Row
}

// Column is one stack of bars. One without requests has no bars.
type Column struct {
	Label string
	Bars  []Bar
}

// Bar is one part of a stack; Kind is accepted, limited or refused.
type Bar struct {
	Kind                string
	X, Y, Width, Height float64
}

// Tick is a number of the axis of requests.
type Tick struct {
	Y      float64
	Number int64
}

// Time is a time below the columns.
type Time struct {
	X    float64
	Text string
	// Minor ones may go where there is little room.
	Minor bool
}

// Row is a line of the table.
type Row struct {
	From    time.Time
	Text    string
	Counts  Counts
	Busiest int64
}

// Counts are requests by what became of them.
type Counts struct{ Accepted, Limited, Refused int64 }

// Total is the number of requests.
func (c Counts) Total() int64 { return c.Accepted + c.Limited + c.Refused }

func (c Counts) plus(o Counts) Counts {
	return Counts{c.Accepted + o.Accepted, c.Limited + o.Limited, c.Refused + o.Refused}
}

// HourSince and DaySince are the first minutes that the charts of this moment show.
func HourSince(now time.Time) time.Time {
	return now.UTC().Truncate(time.Minute).Add(-59 * time.Minute)
}

// DaySince is a whole hour, so that the day is 24 whole hours and the one that has begun.
func DaySince(now time.Time) time.Time { return now.UTC().Truncate(time.Hour).Add(-24 * time.Hour) }

// Hour shows each of the last 60 minutes, the one that has begun included, of intervals of a minute. perMinute is the key's
// limit.
func Hour(usages []account.UsageInterval, perMinute int, now time.Time) Chart {
	minutes := spread(usages, HourSince(now), time.Minute, 60)
	l := layout{columns: 60, top: ceiling(minutes, perMinute)}
	c := l.chart("hour", "Last hour", "in the last hour", perMinute, minutes)
	c.RowHead = "Minute"
	for n, m := range minutes {
		text := m.from.Format("15:04")
		c.Columns = append(c.Columns, l.column(n, text+" UTC", m.sum))
		c.Rows = append(c.Rows, Row{From: m.from, Text: text, Counts: m.sum})
		if m.from.Minute()%10 == 0 {
			c.Times = append(c.Times, Time{X: l.x(n), Text: text, Minor: m.from.Minute()%20 != 0})
		}
	}
	return c
}

// DayColumn is what a column of the day stands for. It shows the busiest minute, because only a minute can be compared with the
// limit.
const DayColumn = 15 * time.Minute

// Day shows the last 24 whole hours and the one that has begun, of intervals of DayColumn. perMinute is the key's limit.
func Day(usages []account.UsageInterval, perMinute int, now time.Time) Chart {
	const hours, perHour = 25, int(time.Hour / DayColumn)
	columns := spread(usages, DaySince(now), DayColumn, hours*perHour)
	l := layout{columns: len(columns), top: ceiling(columns, perMinute)}
	c := l.chart("day", "Last day", "since "+DaySince(now).Format("2 Jan 15:04")+" UTC", perMinute, columns)
	c.RowHead, c.Busiest = "Hour", true
	for n, column := range columns {
		c.Columns = append(c.Columns, l.column(n, "busiest minute "+column.busiest.at.Format("15:04")+" UTC", column.busiest.Counts))
	}
	for hour := range hours {
		part := columns[hour*perHour : (hour+1)*perHour]
		busiest, sum := peak(part)
		text := part[0].from.Format("2 Jan 15:04")
		c.Rows = append(c.Rows, Row{From: part[0].from, Text: text, Counts: sum, Busiest: busiest.Total()})
		if part[0].from.Hour()%3 == 0 {
			c.Times = append(c.Times, Time{X: l.x(hour * perHour), Text: part[0].from.Format("15:04"), Minor: part[0].from.Hour()%6 != 0})
		}
	}
	return c
}

// minute is what happened in one minute, nothing included.
type minute struct {
	at time.Time
	Counts
}

// interval is what happened in an interval, nothing included.
type interval struct {
	from    time.Time
	sum     Counts
	busiest minute
}

// spread gives each of n intervals its usage.
func spread(usages []account.UsageInterval, since time.Time, length time.Duration, n int) []interval {
	intervals := make([]interval, n)
	for i := range intervals {
		from := since.Add(time.Duration(i) * length)
		intervals[i] = interval{from: from, busiest: minute{at: from}}
	}
	for _, u := range usages {
		if at := u.From.Sub(since); at >= 0 && int(at/length) < n {
			b := u.Busiest
			i := &intervals[at/length]
			i.sum = Counts{u.Accepted, u.Limited, u.Refused}
			i.busiest = minute{b.Minute, Counts{b.Accepted, b.Limited, b.Refused}}
		}
	}
	return intervals
}

// peak is the first of the minutes with the most requests, and what all intervals sum up to.
func peak(intervals []interval) (busiest minute, sum Counts) {
	busiest = intervals[0].busiest
	for _, i := range intervals {
		sum = sum.plus(i.sum)
		if i.busiest.Total() > busiest.Total() {
			busiest = i.busiest
		}
	}
	return busiest, sum
}

// summarize says in a sentence what the chart shows.
func summarize(intervals []interval, when string, perMinute int) string {
	busiest, sum := peak(intervals)
	if sum.Total() == 0 {
		return fmt.Sprintf("No requests %s.", when)
	}
	requests := "requests"
	if sum.Total() == 1 {
		requests = "request"
	}
	return fmt.Sprintf("%d %s %s: %d accepted, %d over the limit, %d refused. The busiest minute was %s UTC with %d; the limit is %d a minute.",
		sum.Total(), requests, when, sum.Accepted, sum.Limited, sum.Refused, busiest.at.Format("15:04"), busiest.Total(), perMinute)
}
