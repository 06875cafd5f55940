package system

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/testkit/freeport"
)

// Prometheus is a real one.
type Prometheus struct {
	*Process
	t *testing.T
}

// StartPrometheus runs one with a configuration until the test ends, and returns once it answers.
func StartPrometheus(t *testing.T, config string) *Prometheus {
	t.Helper()
	program := FindProgram(t, "on Debian: apt-get install prometheus", "prometheus")
	dir, address := t.TempDir(), freeport.Address(t)
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := &Prometheus{t: t, Process: StartProcess(t, embedded.Command{Path: program, Args: []string{
		"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address, "--log.level=warn",
	}})}
	p.URL = "http://" + address
	p.Await(t, "it is ready", func() bool { return IsOK(t, p.URL+"/-/ready") })
	return p
}

// Ask reads the data of an answer of its HTTP API.
func (p *Prometheus) Ask(path string, parameters url.Values, into any) {
	p.t.Helper()
	if err := p.TryAsk(path, parameters, into); err != nil {
		p.t.Fatalf("%s %v: %v", path, parameters, err)
	}
}

// TryAsk is Ask for questions that may be refused.
func (p *Prometheus) TryAsk(path string, parameters url.Values, into any) error {
	a, err := NewClient(p.t, p.URL, "").Try(http.MethodGet, "/api/v1/"+path+"?"+parameters.Encode(), nil)
	if err != nil {
		return err
	}
	answer := struct {
		Status, Error string
		Data          any
	}{Data: into}
	if err := json.Unmarshal(a.Body, &answer); err != nil {
		return fmt.Errorf("%d %s: %w", a.Status, a.Body, err)
	}
	if answer.Status != "success" {
		return errors.New(answer.Error)
	}
	return nil
}

// Series are the labels of each series that a query has as its result.
func (p *Prometheus) Series(query string) (series []map[string]string) {
	p.t.Helper()
	var data struct {
		Result []struct{ Metric map[string]string }
	}
	p.Ask("query", url.Values{"query": {query}}, &data)
	for _, one := range data.Result {
		series = append(series, one.Metric)
	}
	return series
}
