package faults_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/freeport"
)

// haproxy is a real HAProxy before gateways, with the configuration that is shipped.
type haproxy struct{ url, statistics string }

// startHAProxy starts one until the test ends. It differs from the shipped configuration in addresses, and has a page of statistics.
func startHAProxy(t *testing.T, fleet []*gateway) *haproxy {
	t.Helper()
	clients, health := freeport.Address(t), freeport.Address(t)
	var servers strings.Builder
	for n, g := range fleet {
		operators := g.OpsURL[strings.LastIndexByte(g.OpsURL, ':')+1:]
		fmt.Fprintf(&servers, "server gateway-%d %s check port %s\n    ", n+1, strings.TrimPrefix(g.URL, "http://"), operators)
	}
	system.StartHAProxy(t, system.Shipped(t, "haproxy/haproxy.cfg", map[string]string{
		"maxconn 20000":    "maxconn 1000",
		"bind :8080\n":     "bind " + clients + "\n",
		"127.0.0.1:8404\n": health + "\n    stats enable\n    stats uri /statistics\n",
		"check port 9080 ": "",
		"init-addr none resolvers docker resolve-prefer ipv4": "",
		"server-template gateway- 64 gateway:8080\n":          servers.String() + "\n",
	}))
	h := &haproxy{url: "http://" + clients, statistics: "http://" + health + "/statistics;csv"}
	asynctest.Eventually(t, "HAProxy uses all gateways", func() bool { return h.inUse(t) == len(fleet) })
	return h
}

// inUse is how many gateways it sends requests to.
func (h *haproxy) inUse(t *testing.T) (up int) {
	t.Helper()
	answer, err := system.NewClient(t, h.statistics, "").Try(http.MethodGet, "", nil)
	if err != nil {
		return 0
	}
	rows, err := csv.NewReader(bytes.NewReader(answer.Body)).ReadAll()
	if err != nil || len(rows) == 0 {
		return 0
	}
	column := map[string]int{}
	for n, name := range rows[0] {
		column[name] = n
	}
	for _, row := range rows {
		if strings.HasPrefix(row[column["svname"]], "gateway-") && row[column["status"]] == "UP" {
			up++
		}
	}
	return up
}
