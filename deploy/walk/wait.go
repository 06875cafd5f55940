package walk

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"intents.internal/pkg/client"
)

// UntilAllowed makes a request again while it is over a limit, and waits before as long as its answer says: what is over a limit was not carried out,
// so each request can be repeated. request returns how long to wait, 0 for an answer that is final, see WaitOf and WaitOfError. waits is told of each
// wait.
func UntilAllowed(ctx context.Context, waits func(time.Duration), request func() (wait time.Duration, err error)) error {
	for {
		wait, err := request()
		if wait <= 0 {
			return err
		}
		waits(wait)
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// WaitOf is how long a response tells its client to wait, 0 for one that was carried out or refused for another reason than a limit.
func WaitOf(response *http.Response) time.Duration {
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if response.StatusCode != http.StatusTooManyRequests || err != nil {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// WaitOfError is WaitOf for the error of a call of the client.
func WaitOfError(err error) time.Duration {
	if failure, ok := errors.AsType[*client.Error](err); ok && failure.Status == http.StatusTooManyRequests {
		return failure.RetryAfter
	}
	return 0
}
