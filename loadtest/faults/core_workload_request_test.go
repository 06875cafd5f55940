package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
)

// The accounts and the token of every intent.
const (
	payer = "eip155:11155111:0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"
	payee = "eip155:11155111:0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
	money = "eip155:11155111:0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"
)

func (c *workload) request(a attempt, key string) (*http.Request, error) {
	url := c.fleet[a.gateway].url + "/v2/transfers"
	ctx := context.WithoutCancel(c.t.Context()) // the client has a timeout
	if a.kind == reads {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"?limit=1", nil)
		if err == nil {
			request.Header.Set("X-Api-Key", key)
		}
		return request, err
	}
	body := fmt.Sprintf(`{"source":{"account":%q,"token":%q,"amount":"1"},"destination":{"account":%q},"reference":%q}`, payer, money, payee, a.reference)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-Api-Key", key)
	request.Header.Set("Content-Type", "application/json")
	// The client must send nothing twice by itself, which net/http does for a request that it can.
	request.GetBody = nil
	if a.kind == keyedWrites {
		request.Header["idempotency-key"] = []string{a.reference} // in a spelling that net/http does not know
	}
	return request, nil
}

func (c *workload) ask(a attempt, key string) (status int, id, fault string, err error) {
	request, err := c.request(a, key)
	if err != nil {
		return 0, "", err.Error(), err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return 0, "", err.Error(), err
	}
	defer response.Body.Close()
	var body bytes.Buffer
	if _, err := io.Copy(&body, response.Body); err != nil {
		return 0, "", err.Error(), nil
	}
	var made struct{ ID string }
	if response.StatusCode == http.StatusCreated {
		if err := json.Unmarshal(body.Bytes(), &made); err != nil {
			return response.StatusCode, "", err.Error(), nil
		}
	}
	return response.StatusCode, made.ID, faultOf(response, body.Bytes()), nil
}

// isRefusedDial reports whether nothing was sent because nothing listens.
func isRefusedDial(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && failed.Op == "dial"
}
