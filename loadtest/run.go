package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"intents.internal/pkg/apikey"
	"intents.internal/pkg/client"
	"intents.internal/pkg/help"
	"intents.internal/pkg/network"
)

// operation is a kind of request of run, with the status of its success.
type operation struct {
	do     func(context.Context, *client.Client) error
	status int
}

// operations are all kinds of requests. The intents are on a testnet and are not executed.
var operations = map[string]operation{
	"list": {func(ctx context.Context, c *client.Client) error {
		_, err := c.Transfers.List(ctx, client.TransferQuery{Limit: 20})
		return err
	}, http.StatusOK},
	"tokens": {func(ctx context.Context, c *client.Client) error {
		_, err := c.Tokens.List(ctx, "eip155:11155111")
		return err
	}, http.StatusOK},
	"create": {func(ctx context.Context, c *client.Client) error {
		_, err := c.Transfers.Create(ctx, newTransfer)
		return err
	}, http.StatusCreated},
	"quote": {func(ctx context.Context, c *client.Client) error {
		_, err := c.Quotes.Create(ctx, newQuotes)
		return err
	}, http.StatusOK},
}

// newTransfer is the intent that loads make.
var newTransfer = client.CreateTransfer{
	Source: &client.SourceRequest{
		Account: "eip155:11155111:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
		Token:   "eip155:11155111:0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE", Amount: "1",
	},
	Destination: &client.DestinationRequest{Account: "eip155:11155111:0x70997970C51812dc3A010C7d01b50e0d17dc79C8"},
}

// newQuotes is the swap that is quoted. Without a provider or a settlement of both testnets the answer is a 422.
var newQuotes = client.CreateQuotes{
	Source: client.SourceRequest{
		Account: "eip155:11155111:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266",
		Token:   "eip155:11155111:0x1c7D4B196Cb0C7B01d743Fbc6116a902379C7238", Amount: "1000000",
	},
	Destination: client.DestinationRequest{
		Account: "eip155:84532:0x70997970C51812dc3A010C7d01b50e0d17dc79C8", Token: "eip155:84532:0x036CbD53842c5426634e7929541eC2318f3dCF7e",
	},
}

// newTransferBody is newTransfer as the body of a request.
func newTransferBody() string {
	text, err := json.Marshal(newTransfer)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// deployment is a deployed service and its load.
type deployment struct {
	url  string
	keys []string
	// mix has each operation's name as many times as its share.
	mix  []string
	load openLoop
}

// runDeployment sends a constant load to any deployment, and prints the results.
func runDeployment(ctx context.Context, args []string) error {
	d, err := parseDeployment(args)
	if err != nil {
		return err
	}
	results, err := d.measure(ctx, os.Stderr)
	if err != nil {
		return err
	}
	results.print(os.Stdout)
	if failed := results.failed(); failed > 0 {
		return fmt.Errorf("%d requests failed: the gateway's log names the cause of each by its X-Request-Id", failed)
	}
	return nil
}

func parseDeployment(args []string) (d deployment, err error) {
	flags := help.FlagSet("run", args)
	flags.StringVar(&d.url, "url", "", "the gateway's `URL`, such as https://intents.example.com")
	keys := flags.String("keys", "", "a `FILE` with one API key a line; requests use them in turn, and each may send 50 a minute")
	mix := flags.String("mix", "list=6,create=3,tokens=1", "the `SHARES` of operations: list, create, quote, tokens")
	flags.Float64Var(&d.load.rate, "rate", 10, "requests a second, whether or not there are responses to earlier ones")
	flags.DurationVar(&d.load.duration, "time", 30*time.Second, "for how long")
	flags.IntVar(&d.load.connections, "conns", 64, "connections at the most")
	if err := flags.Parse(args); err != nil {
		return d, err
	}
	at, err := url.Parse(d.url)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return d, fmt.Errorf("-url %q is not an http or https URL", d.url)
	}
	d.url = strings.TrimSuffix(d.url, "/")
	if d.load.rate <= 0 || d.load.duration < time.Second || d.load.connections < 1 {
		return d, errors.New("-rate and -conns must be above 0, -time at least 1s")
	}
	if d.mix, err = parseMix(*mix); err != nil {
		return d, err
	}
	d.keys, err = readKeys(*keys, slices.ContainsFunc(d.mix, func(name string) bool { return name == "create" || name == "quote" }))
	return d, err
}

// parseMix parses name=share, comma separated.
func parseMix(text string) (mix []string, err error) {
	for part := range strings.SplitSeq(text, ",") {
		name, share, _ := strings.Cut(part, "=")
		n, err := strconv.Atoi(share)
		if _, known := operations[name]; !known || err != nil || n < 0 || n > 1000 {
			return nil, fmt.Errorf("-mix %q: each part is list, create, quote or tokens, = and a whole number up to 1000", part)
		}
		mix = append(mix, slices.Repeat([]string{name}, n)...)
	}
	if len(mix) == 0 {
		return nil, errors.New("-mix leaves nothing to do")
	}
	return mix, nil
}

// readKeys reads one key per line. For testnets live keys are an error: they are for mainnets only.
func readKeys(path string, testnet bool) ([]string, error) {
	if path == "" {
		return nil, errors.New("-keys is required: a file with one API key a line")
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	keys := strings.Fields(string(content))
	for n, text := range keys {
		key, err := apikey.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: key %d: %w", path, n+1, err)
		}
		if testnet && key.Environment() != network.Test {
			return nil, fmt.Errorf("%s: key %d is a live key, and create and quote are about testnets: leave them out of -mix, or use test keys", path, n+1)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("%s has no keys", path)
	}
	return keys, nil
}

// operationResult has the response times of an operation, and the number of responses by status; 0 is a request without a
// response.
type operationResult struct {
	times    []time.Duration
	statuses map[int]int
}

// runResults are the results by operation.
type runResults map[string]*operationResult

// measure sends the requests and reports the progress. A response time counts from when the request was due.
func (d deployment) measure(ctx context.Context, progress io.Writer) (runResults, error) {
	connections := &http.Client{
		Timeout:   time.Minute,
		Transport: &http.Transport{MaxConnsPerHost: d.load.connections, MaxIdleConnsPerHost: d.load.connections},
	}
	defer connections.CloseIdleConnections()
	clients := make([]*client.Client, len(d.keys))
	for n, key := range d.keys {
		var err error
		if clients[n], err = client.New(d.url, key, client.WithHTTPClient(connections), client.WithMaxTries(1)); err != nil {
			return nil, err
		}
	}
	results := runResults{}
	for _, name := range d.mix {
		results[name] = &operationResult{statuses: map[int]int{}}
	}
	jobs := make(chan job, int(d.load.rate*d.load.duration.Seconds()))
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range d.load.connections {
		workers.Go(func() {
			for j := range jobs {
				name := d.mix[j.n%len(d.mix)]
				status := operations[name].statusOf(ctx, clients[j.n%len(clients)])
				mu.Lock()
				results[name].times = append(results[name].times, time.Since(j.due))
				results[name].statuses[status]++
				if done := results.requests(); done%max(1, cap(jobs)/10) == 0 {
					fmt.Fprintf(progress, "%d of %d requests answered\n", done, cap(jobs))
				}
				mu.Unlock()
			}
		})
	}
	d.load.pace(ctx, time.Now(), jobs)
	workers.Wait()
	return results, ctx.Err()
}

// statusOf makes a request and returns the status of its response, 0 if there is none.
func (o operation) statusOf(ctx context.Context, c *client.Client) int {
	err := o.do(ctx, c)
	var failure *client.Error
	switch {
	case err == nil:
		return o.status
	case errors.As(err, &failure):
		return failure.Status
	default:
		return 0
	}
}

func (m runResults) requests() (n int) {
	for _, a := range m {
		n += len(a.times)
	}
	return n
}

// failed is the number of requests without a response or with a 5xx.
func (m runResults) failed() (n int) {
	for _, a := range m {
		for status, count := range a.statuses {
			if status == 0 || status >= http.StatusInternalServerError {
				n += count
			}
		}
	}
	return n
}

func (m runResults) print(to io.Writer) {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "operation\trequests\tp50\tp99\tp99.9\tresponses by status (0: none)")
	for _, name := range slices.Sorted(maps.Keys(m)) {
		a := m[name]
		slices.Sort(a.times)
		round := func(share float64) time.Duration { return percentile(a.times, share).Round(10 * time.Microsecond) }
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s", name, len(a.times), round(0.5), round(0.99), round(0.999))
		for i, status := range slices.Sorted(maps.Keys(a.statuses)) {
			separator := " "
			if i == 0 {
				separator = "\t"
			}
			fmt.Fprintf(table, "%s%d: %d", separator, status, a.statuses[status])
		}
		fmt.Fprintln(table)
	}
	_ = table.Flush()
}
