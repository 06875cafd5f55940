// Package chart lays out a key's usage as stacked columns for the template that draws them: where each bar stands, what
// the axes say, and the same numbers in words and as a table. It draws nothing and reads no clock.
package chart

import (
	"fmt"
	"time"

	"intents.internal/core/account"
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

// Hour shows each of the last 60 minutes, the one that has begun included. perMinute is the key's limit.
func Hour(usages []account.Usage, perMinute int, now time.Time) Chart {
	minutes := byMinute(usages, HourSince(now), 60)
	l := layout{columns: 60, top: ceiling(minutes, perMinute)}
	c := l.chart("hour", "Last hour", "in the last hour", perMinute, minutes)
	c.RowHead = "Minute"
	for n, m := range minutes {
		text := m.at.Format("15:04")
		c.Columns = append(c.Columns, l.column(n, text+" UTC", m.Counts))
		c.Rows = append(c.Rows, Row{From: m.at, Text: text, Counts: m.Counts})
		if m.at.Minute()%10 == 0 {
			c.Times = append(c.Times, Time{X: l.x(n), Text: text, Minor: m.at.Minute()%20 != 0})
		}
	}
	return c
}

// columnMinutes is how many minutes a column of the day stands for. It shows the busiest of them, because only a minute
// can be compared with the limit.
const columnMinutes = 15

// Day shows the last 24 whole hours and the one that has begun. perMinute is the key's limit.
func Day(usages []account.Usage, perMinute int, now time.Time) Chart {
	const hours = 25
	minutes := byMinute(usages, DaySince(now), hours*60)
	l := layout{columns: len(minutes) / columnMinutes, top: ceiling(minutes, perMinute)}
	c := l.chart("day", "Last day", "since "+DaySince(now).Format("2 Jan 15:04")+" UTC", perMinute, minutes)
	c.RowHead, c.Busiest = "Hour", true
	for n := range l.columns {
		busiest, _ := peak(minutes[n*columnMinutes : (n+1)*columnMinutes])
		c.Columns = append(c.Columns, l.column(n, "busiest minute "+busiest.at.Format("15:04")+" UTC", busiest.Counts))
	}
	for hour := range hours {
		part := minutes[hour*60 : (hour+1)*60]
		busiest, sum := peak(part)
		text := part[0].at.Format("2 Jan 15:04")
		c.Rows = append(c.Rows, Row{From: part[0].at, Text: text, Counts: sum, Busiest: busiest.Total()})
		if part[0].at.Hour()%3 == 0 {
			c.Times = append(c.Times, Time{
				X: l.x(hour * 60 / columnMinutes), Text: part[0].at.Format("15:04"), Minor: part[0].at.Hour()%6 != 0,
			})
		}
	}
	return c
}

// minute is what happened in one minute, nothing included.
type minute struct {
	at time.Time
	Counts
}

func byMinute(usages []account.Usage, since time.Time, n int) []minute {
	minutes := make([]minute, n)
	for i := range minutes {
		minutes[i].at = since.Add(time.Duration(i) * time.Minute)
	}
	for _, u := range usages {
		if at := u.Minute.Sub(since); at >= 0 && int(at/time.Minute) < n {
			m := &minutes[at/time.Minute]
			m.Counts = m.plus(Counts{u.Accepted, u.Limited, u.Refused})
		}
	}
	return minutes
}

// peak is the first of the minutes with the most requests, and what all of them sum up to.
func peak(minutes []minute) (busiest minute, sum Counts) {
	busiest = minutes[0]
	for _, m := range minutes {
		sum = sum.plus(m.Counts)
		if m.Total() > busiest.Total() {
			busiest = m
		}
	}
	return busiest, sum
}

// summarize says in a sentence what the chart shows.
func summarize(minutes []minute, when string, perMinute int) string {
	busiest, sum := peak(minutes)
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
