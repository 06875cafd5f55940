package control

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"intents.internal/gateway/cores"
	"intents.internal/pkg/wire"
)

// question is what core is asked. Asking it twice does no harm.
type question struct {
	method string
	// target is the path and query; again is what they are once a core has left the question unanswered, empty for the
	// same.
	target, again string
	body          []byte
	etag          string
	// coding is the one content coding that the answer may have besides the identity; empty for none.
	coding string
	// hold is how long core may rightly take before it answers.
	hold time.Duration
	// longest bounds the answer, in bytes; 0 for maxAnswerBytes.
	longest int64
}

// answer is what core's reply says outside its body. As an error it is a status nobody asked for.
type answer struct {
	status int
	code   wire.Code
	header http.Header
}

func (a answer) Error() string { return fmt.Sprintf("core answered %d %s", a.status, a.code) }

// ask puts the question to one core after the other until one answers, or no time or core is left, and decodes the body
// of a 200 into out.
func (c *Client) ask(ctx context.Context, q question, out any) (answer, error) {
	var tried cores.Tried
	var got answer
	failed := errors.New("no core is left to ask")
	for core := c.cores.Pick(tried); core != nil; core = c.cores.Pick(tried) {
		attempt, cancel := c.patience(ctx, core, q.hold)
		text, reply, err := c.put(attempt, core, q)
		cancel()
		if err == nil && reply.status < http.StatusInternalServerError {
			err := c.take(text, &reply, out)
			return reply, err
		}
		reply.code = codeOf(text)
		got, failed = reply, err
		switch {
		case ctx.Err() != nil:
			return got, failed
		case errors.Is(err, errTooLong):
			return got, failed
		case errors.Is(err, errLeft):
		case isUnreached(err):
			core.MarkUnreachable(err)
		case err != nil:
			core.MarkFailed()
		}
		tried.MarkUnreachable(core)
		if q.again != "" {
			q.target, q.hold = q.again, 0
		}
	}
	return got, failed
}

// patience is how long one core may take: half of the time that is left, where there is another to ask.
func (c *Client) patience(ctx context.Context, core *cores.Core, hold time.Duration) (context.Context, context.CancelFunc) {
	deadline, bounded := ctx.Deadline()
	if !bounded || !c.cores.OtherUp(core) {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, hold+(time.Until(deadline)-hold)/2)
}

// put puts the question to one core and reads the reply.
func (c *Client) put(ctx context.Context, core *cores.Core, q question) (text []byte, reply answer, err error) {
	request, err := http.NewRequestWithContext(ctx, q.method, core.URL.Scheme+"://"+core.URL.Host+q.target, bytes.NewReader(q.body))
	if err != nil {
		return nil, answer{}, err
	}
	request.Header.Set(wire.HeaderGatewaySecret, c.secret.Reveal())
	if q.body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("Accept-Encoding", cmp.Or(q.coding, "identity"))
	if q.etag != "" {
		request.Header.Set("If-None-Match", q.etag)
	}
	span := startQuestion(ctx, core, q, request.Header)
	defer func() { endQuestion(span, reply.status, err) }()
	core.Begin()
	defer core.End()
	client, ok := c.http.Get(core)
	if !ok {
		return nil, answer{}, errLeft
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, answer{}, err
	}
	defer response.Body.Close()
	longest := cmp.Or(q.longest, maxAnswerBytes)
	text, err = io.ReadAll(io.LimitReader(response.Body, longest+1))
	if err != nil {
		return nil, answer{}, err
	}
	if int64(len(text)) > longest {
		return nil, answer{}, errTooLong
	}
	if response.Close {
		core.ProbeNow()
	}
	return text, answer{status: response.StatusCode, header: response.Header}, nil
}

// take notes that core has answered, and reads what it said: as it is where out is a *[]byte, else as JSON.
func (c *Client) take(text []byte, reply *answer, out any) error {
	now := time.Now()
	c.answered.Store(&now)
	if reply.status == http.StatusOK {
		if raw, ok := out.(*[]byte); ok {
			*raw = text
			return nil
		}
		return json.Unmarshal(text, out)
	}
	reply.code = codeOf(text)
	return nil
}

func codeOf(text []byte) wire.Code {
	var refusal wire.Error
	if json.Unmarshal(text, &refusal) != nil {
		return ""
	}
	return refusal.Code
}

func isUnreached(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && failed.Op == "dial"
}
