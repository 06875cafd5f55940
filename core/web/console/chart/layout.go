package chart

import "fmt"

// layout turns counts into places.
type layout struct {
	columns int
	// top is the number at the upper end of the axis.
	top int64
}

func (l layout) chart(id, title, when string, perMinute int, intervals []interval) Chart {
	c := Chart{
		ID: id, Title: title, Summary: summarize(intervals, when, perMinute),
		Limit: int64(perMinute), LimitY: l.y(int64(perMinute)),
	}
	for number := int64(0); number <= l.top; number += l.top / 4 {
		c.Ticks = append(c.Ticks, Tick{Y: l.y(number), Number: number})
	}
	return c
}

// x is the left end of a column.
func (l layout) x(column int) float64 {
	return round(left + float64(column)*(Width-left)/float64(l.columns))
}

// middle is the middle of a column.
func (l layout) middle(column int) float64 { return round((l.x(column) + l.x(column+1)) / 2) }

// y is the height at which a number stands.
func (l layout) y(number int64) float64 {
	return round(Height - bottom - float64(number)/float64(l.top)*(Height-bottom-top))
}

// column stacks accepted, limited and refused requests, from below.
func (l layout) column(n int, label string, c Counts) Column {
	column := Column{Label: fmt.Sprintf("%s: %d accepted, %d over the limit, %d refused", label, c.Accepted, c.Limited, c.Refused)}
	slot := (Width - left) / float64(l.columns)
	below := int64(0)
	for _, part := range []struct {
		kind  string
		count int64
	}{{"accepted", c.Accepted}, {"limited", c.Limited}, {"refused", c.Refused}} {
		if part.count == 0 {
			continue
		}
		y := l.y(below + part.count)
		column.Bars = append(column.Bars, Bar{
			Kind: part.kind, X: round(l.x(n) + slot*gap/2), Y: y, Width: round(slot * (1 - gap)), Height: round(l.y(below) - y),
		})
		below += part.count
	}
	return column
}

// ceiling is the upper end of the axis: round, divisible by four, above the limit and every minute.
func ceiling(intervals []interval, perMinute int) int64 {
	busiest, _ := peak(intervals)
	highest := max(busiest.Total(), int64(perMinute)+1)
	for unit := int64(1); ; unit *= 10 {
		for _, step := range []int64{20, 40, 60, 80, 100, 160} {
			if highest <= step*unit {
				return step * unit
			}
		}
	}
}

// round keeps two digits, which is finer than anyone can see.
func round(f float64) float64 { return float64(int64(f*100+0.5)) / 100 }
