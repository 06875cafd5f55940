package watch

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"intents.internal/core/evm"
	"intents.internal/core/rpc"
)

// metrics are those of all chains that this process follows.
type metrics struct {
	head, lag, readAt, interval, stopped            *prometheus.GaugeVec
	ticks                                           *prometheus.HistogramVec
	failures, reorgs, disagreements, lagging        *prometheus.CounterVec
	unmatchedEvents, repairedEvents, confirmedAlone *prometheus.CounterVec
	unreadable, claimedUnfilled, unpaid             *prometheus.CounterVec
	floodedBlocks                                   *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	factory := promauto.With(registry)
	chain, ofProvider := []string{"chain"}, []string{"chain", "host"}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return factory.NewGaugeVec(prometheus.GaugeOpts{Name: "intents_core_chain_" + name, Help: help}, chain)
	}
	counter := func(name, help string, labels []string) *prometheus.CounterVec {
		return factory.NewCounterVec(prometheus.CounterOpts{Name: "intents_core_chain_" + name, Help: help}, labels)
	}
	return &metrics{
		head:     gauge("head_block", "Newest block of the chain that was read by this process, which follows the chain. It stands still when no provider answers."),
		lag:      gauge("cursor_lag_blocks", "Blocks between the newest one and the last that is not read again. It is the chain's confirmations and one poll; more is a backlog."),
		readAt:   gauge("read_timestamp_seconds", "When the chain was last read to its head, Unix time. An old one means that the statuses of its intents stand still."),
		interval: gauge("tick_interval_seconds", "Time between two polls at the chain: its block time, but not less than CORE_CHAIN_TICK. A chain that no unfinished intent touches is looked at once a minute."),
		stopped:  gauge("stopped", "1 while the chain is not followed because a final block has changed; core chains resume follows it again."),
		ticks: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name: "intents_core_chain_tick_seconds", Help: "Time of one poll of a chain. A rise to the chain's block time means that providers or Postgres are slow.",
		}, chain),
		failures: counter("tick_failures_total", "Polls of a chain that failed at all its providers, or at Postgres. The next poll makes up for it.", chain),
		reorgs: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "intents_core_chain_reorgs_total", Help: "Reorganizations of the chain, by how many blocks fell at the most: 1, 2-5, 6-20, more.",
		}, []string{"chain", "depth"}),
		disagreements:   counter("disagreements_total", "Times a provider showed other blocks, events or receipts than another provider, or than itself before. Nothing was concluded.", ofProvider),
		lagging:         counter("lagging_total", "Times a provider was behind blocks that were seen before: another was asked, or its second opinion waited for.", ofProvider),
		unmatchedEvents: counter("unmatched_events_total", "Events that name an order of an intent and come from another contract or chain than the intent's, that are fills of another output than the order's, or that cannot be read. A rise means that somebody tries to pass orders off as filled.", chain),
		repairedEvents:  counter("repaired_events_total", "Events that the hourly comparison with the settlers found missing. It should stay 0: a provider left them out.", chain),
		claimedUnfilled: counter("claimed_unfilled_total", "Comparisons with the settlers in which an order was claimed at the input settler of this chain while the output settler of its destination had no record of a fill. The sender's money is gone and the recipient has nothing: the deployment's oracle accepted a false proof, or the destination's provider hides the fill.", chain),
		unpaid:          counter("unpaid_opens_total", "Orders of intents that an input settler of this chain opened without the Transfer of their input to it. The order holds no money: the intent fails with TX_MISMATCH, and a solver that fills it is not paid. The source token, or the settlement, does not fit orders.", chain),
		unreadable:      counter("unreadable_attempts_total", "Look-ups of reported transactions that no provider could show so that they can be judged: the receipt cannot be decoded, or the state of its block is pruned. Each is tried again, at most once an hour; others are not held up.", chain),
		floodedBlocks:   counter("flooded_blocks_total", "Readings of a block that has more of the settlers' events than a provider returns at once: the events of live orders were asked for by their ids. A rise means that somebody has a settler emit events in masses.", chain),
		confirmedAlone:  counter("confirmed_alone_total", "Transactions that were confirmed by one provider because all others had been down for a minute.", chain),
	}
}

// chainMetrics are those of one chain.
type chainMetrics struct {
	*metrics
	chain string
}

// of creates each counter of the chain at 0: increase() misses the first event of a counter that is created by it.
func (m *metrics) of(chain *rpc.Chain) chainMetrics {
	c := chainMetrics{m, chain.ID().String()}
	for _, v := range []*prometheus.CounterVec{m.failures, m.unmatchedEvents, m.repairedEvents, m.confirmedAlone, m.unreadable, m.claimedUnfilled, m.unpaid, m.floodedBlocks} {
		v.WithLabelValues(c.chain)
	}
	for _, depth := range []string{"1", "2-5", "6-20", "more"} {
		m.reorgs.WithLabelValues(c.chain, depth)
	}
	for _, p := range chain.All() {
		m.disagreements.WithLabelValues(c.chain, p.Host())
		m.lagging.WithLabelValues(c.chain, p.Host())
	}
	return c
}

// forget removes the chain's metrics, which another process reports from now on.
func (c chainMetrics) forget() {
	for _, v := range []*prometheus.GaugeVec{c.head, c.lag, c.readAt, c.interval, c.metrics.stopped} {
		v.DeleteLabelValues(c.chain)
	}
}

func (c chainMetrics) tick(took time.Duration, err error) {
	c.ticks.WithLabelValues(c.chain).Observe(took.Seconds())
	if err != nil {
		c.failures.WithLabelValues(c.chain).Inc()
	}
}

func (c chainMetrics) read(v *view, interval time.Duration) {
	c.interval.WithLabelValues(c.chain).Set(interval.Seconds())
	c.head.WithLabelValues(c.chain).Set(float64(v.head.Number))
	c.lag.WithLabelValues(c.chain).Set(float64(v.head.Number - v.next().Cursor))
	if v.to == v.head.Number {
		c.readAt.WithLabelValues(c.chain).SetToCurrentTime()
	}
}

func (c chainMetrics) stopped(is bool) {
	value := 0.0
	if is {
		value = 1
	}
	c.metrics.stopped.WithLabelValues(c.chain).Set(value)
}

func (c chainMetrics) reorganized(blocks uint64) {
	depth := "more"
	switch {
	case blocks <= 1:
		depth = "1"
	case blocks <= 5:
		depth = "2-5"
	case blocks <= 20:
		depth = "6-20"
	}
	c.reorgs.WithLabelValues(c.chain, depth).Inc()
}

func (c chainMetrics) providerFailed(p *rpc.Provider, err error) {
	if errors.Is(err, errLags) {
		c.lags(p)
	}
}

func (c chainMetrics) lags(p *rpc.Provider) { c.lagging.WithLabelValues(c.chain, p.Host()).Inc() }

func (c chainMetrics) disagreed(p *rpc.Provider) {
	c.disagreements.WithLabelValues(c.chain, p.Host()).Inc()
}

// unmatched counts an event when its block is read for the first time.
func (c chainMetrics) unmatched(v *view, l evm.Log) {
	if l.BlockNumber > v.before.Head {
		c.unmatchedEvents.WithLabelValues(c.chain).Inc()
	}
}

func (c chainMetrics) openedUnpaid() { c.unpaid.WithLabelValues(c.chain).Inc() }

func (c chainMetrics) claimedWithoutFill() { c.claimedUnfilled.WithLabelValues(c.chain).Inc() }

func (c chainMetrics) repaired(n int) { c.repairedEvents.WithLabelValues(c.chain).Add(float64(n)) }

func (c chainMetrics) unreadableAttempts(n int) {
	c.unreadable.WithLabelValues(c.chain).Add(float64(n))
}

func (c chainMetrics) confirmedAlone(n int) {
	c.metrics.confirmedAlone.WithLabelValues(c.chain).Add(float64(n))
}
