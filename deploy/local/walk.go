package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"intents.internal/deploy/stack"
	"intents.internal/deploy/walk"
	"intents.internal/pkg/client"
	"intents.internal/pkg/help"
)

// refundPoll is the time between two looks at an order that has expired: its chain's clock is that of its last block.
const refundPoll = 2 * time.Second

// awaitEach bounds the wait for what an intent becomes.
const awaitEach = 2 * time.Minute

// runWalk makes the walk of README.md against the running stack.
func runWalk(args []string) error {
	var data string
	flags := help.FlagSet("local walk", args)
	dataFlag(flags, &data)
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), "Usage: local walk [flags]\n\nMakes the walk of deploy/local/README.md against the running stack, and shows each request and answer in short.\nIt takes some two minutes, because an order has to expire before it is refunded.\n\n")
		flags.PrintDefaults()
	}
	others, err := parseMixed(flags, args)
	if err == nil && len(others) > 0 {
		err = fmt.Errorf("unexpected argument %q", others[0])
	}
	if err == nil {
		err = resolveData(&data)
	}
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	if err != nil {
		return &usageError{err}
	}
	env, err := readEnv(data)
	if err != nil {
		return err
	}
	root, err := stack.FindRoot()
	if err != nil {
		return err
	}
	steps, err := walk.Read(root)
	if err != nil {
		return fmt.Errorf("read the walk: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	quiet, err := newSender(env, io.Discard)
	if err != nil {
		return err
	}
	return newWalker(quiet, os.Stdout).walk(ctx, steps)
}

// walker makes the requests of the walk, and sends what they make.
type walker struct {
	*sender
	out     io.Writer
	started time.Time
	// quote is the id of the quote that was asked for last.
	quote string
	// unfilled is the order that nobody fills, which is refunded at the end.
	unfilled string
}

// newWalker returns a walker that shows what it does, also each wait of its sender.
func newWalker(quiet *sender, out io.Writer) *walker {
	w := &walker{sender: quiet, out: out, started: time.Now()}
	quiet.waits = func(wait time.Duration) { w.say("    waits %s\n", wait) }
	return w
}

// made is what an answer says that the walk goes on with, or shows.
type made struct {
	ID, Type, Status, Code, Message string
	Count                           int
	Quotes                          []struct {
		ID, Provider string
		Destination  struct{ Amount string }
	}
}

func (w *walker) walk(ctx context.Context, steps []walk.Step) error {
	for _, step := range steps {
		shown := false
		for _, command := range step.Commands {
			request, err := walk.RequestOf(command, time.Now())
			if errors.Is(err, walk.ErrNoRequest) { // a command that sends, waits or sets the shell up, which the walk does for each intent
				continue
			}
			if !shown {
				w.say("\n%s\n", cmp.Or(step.Text, "The first intent:"))
				shown = true
			}
			if err := w.try(ctx, request); err != nil {
				return err
			}
		}
	}
	return w.refundUnfilled(ctx)
}

// try makes a request, sends what it makes, and waits for the end.
func (w *walker) try(ctx context.Context, request walk.Request) error {
	answer, err := w.post(ctx, request)
	if err != nil {
		return err
	}
	switch {
	case len(answer.Quotes) > 0:
		best := answer.Quotes[0]
		w.quote = best.ID
		w.say("    the best of %d: %s of %s\n", len(answer.Quotes), best.Destination.Amount, best.Provider)
		return nil
	case answer.Count > 0:
		w.say("  $ go run ./deploy/local send %s\n", answer.ID)
		if err := w.send(ctx, answer.ID); err != nil {
			return err
		}
		batch, err := w.api.Batches.Get(ctx, answer.ID)
		for n := 0; err == nil && n < len(batch.Transfers); n++ {
			err = w.await(ctx, batch.Transfers[n].ID)
		}
		return err
	}
	w.say("  $ go run ./deploy/local send %s\n", answer.ID)
	if err := w.send(ctx, answer.ID); err != nil {
		return err
	}
	if strings.Contains(request.Body, `"refund-me"`) {
		w.unfilled = answer.ID
		return nil
	}
	return w.await(ctx, answer.ID)
}

// post makes a request and shows it with its answer. Over the limit of the key, which a walk by hand has used too, it waits as long as it is told.
func (w *walker) post(ctx context.Context, request walk.Request) (answer made, err error) {
	body := strings.Replace(request.Body, "QUOTE", w.quote, 1)
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(body)); err != nil {
		return answer, fmt.Errorf("read the body of the page: %w: %s", err, body)
	}
	w.say("  > POST %s %s\n", request.Path, short(compact.String()))
	err = walk.UntilAllowed(ctx, w.waits, func() (time.Duration, error) {
		response, err := w.request(ctx, request, compact.Bytes())
		if err != nil {
			return 0, err
		}
		defer func() { _ = response.Body.Close() }()
		answer = made{}
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
			return 0, fmt.Errorf("read the answer to POST %s: %w", request.Path, err)
		}
		w.say("  < %d %s\n", response.StatusCode, answer.short())
		if response.StatusCode >= http.StatusBadRequest {
			err = fmt.Errorf("POST %s: %d %s: %s", request.Path, response.StatusCode, answer.Code, answer.Message)
		}
		return walk.WaitOf(response), err
	})
	return answer, err
}

// request makes a request with a body.
func (w *walker) request(ctx context.Context, request walk.Request, body []byte) (*http.Response, error) {
	sent, err := http.NewRequestWithContext(ctx, http.MethodPost, w.env["GATEWAY_URL"]+request.Path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	sent.Header.Set("X-Api-Key", w.env["TEST_KEY"])
	sent.Header.Set("Content-Type", "application/json")
	if request.IdempotencyKey != "" { // of this walk: the batch of an earlier one is paid
		sent.Header.Set("Idempotency-Key", request.IdempotencyKey+"-"+strconv.FormatInt(w.started.UnixNano(), 36))
	}
	response, err := w.http.Do(sent)
	if err != nil {
		return nil, fmt.Errorf("the gateway does not answer, so the stack is probably not running any more: %w", err)
	}
	return response, nil
}

// short is the answer in a few words.
func (m made) short() string {
	words := []string{m.Code, m.Message, m.Type, m.ID, m.Status}
	if m.Count > 0 {
		words = append(words, fmt.Sprintf("%d intents", m.Count))
	}
	if len(m.Quotes) > 0 {
		words = append(words, fmt.Sprintf("%d quotes", len(m.Quotes)))
	}
	return strings.Join(strings.Fields(strings.Join(words, " ")), " ")
}

// short is a text that fits a line.
func short(text string) string {
	const most = 100
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}

// await waits for the end of an intent.
func (w *walker) await(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, awaitEach)
	defer cancel()
	ended, err := w.api.Transfers.Wait(ctx, id, client.WaitOptions{})
	if err != nil {
		return fmt.Errorf("wait for the end of %s: %w", id, hint(err))
	}
	w.say("  < %s %s\n", id, ended.Status)
	if ended.Status != client.StatusConfirmed && ended.Status != client.StatusFilled && ended.Status != client.StatusRefunded {
		return fmt.Errorf("the %s %s has ended %s", ended.Type, id, ended.Status)
	}
	return nil
}

// refundUnfilled refunds the order that nobody fills, once it has expired.
func (w *walker) refundUnfilled(ctx context.Context) error {
	if w.unfilled == "" {
		return errors.New("the page has no order with the reference refund-me")
	}
	intent, err := w.read(ctx, w.unfilled)
	if err != nil {
		return err
	}
	if intent.Order == nil {
		return fmt.Errorf("the %s %s has no order to refund", intent.Type, intent.ID)
	}
	expires := time.Unix(intent.Order.Expires, 0)
	w.say("\nThe order that nobody fills can be refunded once it has expired, at %s.\n", expires.Format(time.TimeOnly))
	pause := time.NewTimer(time.Until(expires))
	defer pause.Stop()
	for !intent.Refundable {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-pause.C:
			pause.Reset(refundPoll)
		}
		if intent, err = w.read(ctx, w.unfilled); err != nil {
			return err
		}
	}
	w.say("  $ go run ./deploy/local send %s --refund\n", w.unfilled)
	if err := w.refund(ctx, w.unfilled); err != nil {
		return err
	}
	return w.await(ctx, w.unfilled)
}

func (w *walker) say(format string, args ...any) { _, _ = fmt.Fprintf(w.out, format, args...) }
