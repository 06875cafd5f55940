package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"text/template"
	"time"

	"github.com/google/uuid"

	"intents.internal/core/identity/account"
	"intents.internal/pkg/testkit/embedded"
	"intents.internal/pkg/wire"
)

const stopSignal = syscall.SIGTERM

// identity returns the headers that core requires from a gateway.
func (b *bench) identity() [][2]string {
	return [][2]string{
		{wire.HeaderGatewaySecret, b.secret},
		{wire.HeaderAccountID, b.account.String()},
		{wire.HeaderKeyID, uuid.NewString()},
		{wire.HeaderKeyEnv, "test"},
	}
}

// identityLines are these headers as lines of a request.
func (b *bench) identityLines() (lines []string) {
	for _, header := range b.identity() {
		lines = append(lines, header[0]+": "+header[1])
	}
	return lines
}

// peer is a proxy of core: at the address bare without checks, and at limited with a rate limit per API key.
type peer struct {
	missing       string // why it does not run, empty if it does
	bare, limited string
	pids          []int
}

var nginxConfig = template.Must(template.New("nginx").Parse(`daemon off;
worker_processes 1;
pid {{.Dir}}/nginx.pid;
error_log stderr crit;
events { worker_connections 8192; }
http {
  access_log off;
  server_tokens off;
  keepalive_requests 1000000000;
  client_body_temp_path {{.Dir}}/nginx-body;
  proxy_temp_path {{.Dir}}/nginx-proxy;
  fastcgi_temp_path {{.Dir}}/nginx-fastcgi;
  uwsgi_temp_path {{.Dir}}/nginx-uwsgi;
  scgi_temp_path {{.Dir}}/nginx-scgi;
  upstream core {
    server {{.Core}};
    keepalive 1024;
    keepalive_requests 1000000000;
  }
  proxy_http_version 1.1;
  proxy_set_header Connection "";{{range .Identity}}
  proxy_set_header {{index . 0}} {{index . 1}};{{end}}
  limit_req_zone $http_x_api_key zone=keys:16m rate={{.Limit}}r/m;
  server {
    listen {{.Bare}};
    location / { proxy_pass http://core; }
  }
  server {
    listen {{.Limited}};
    limit_req zone=keys burst={{.Limit}} nodelay;
    limit_req_status 429;
    location / { proxy_pass http://core; }
  }
}
`))

// startNginx starts nginx in front of core, if it is installed.
func (b *bench) startNginx(ctx context.Context) (p peer, err error) {
	path, err := findProgram("nginx")
	if err != nil {
		return peer{missing: err.Error()}, nil //nolint:nilerr // its row has the error
	}
	if p.bare, err = freeAddress(); err != nil {
		return p, err
	}
	if p.limited, err = freeAddress(); err != nil {
		return p, err
	}
	config := filepath.Join(b.dir, "nginx.conf")
	file, err := os.Create(config)
	if err != nil {
		return p, err
	}
	err = nginxConfig.Execute(file, map[string]any{
		"Dir": b.dir, "Core": b.upstream, "Bare": p.bare, "Limited": p.limited,
		"Identity": b.identity(), "Limit": account.DefaultLimit.Requests,
	})
	if err := errors.Join(err, file.Close()); err != nil {
		return p, err
	}
	process, err := b.startPeer(ctx, embedded.Command{
		Name: "nginx", Path: path, Args: []string{"-e", "stderr", "-p", b.dir, "-c", config},
	}, p.bare, p.limited)
	if err != nil {
		return p, err
	}
	p.pids = processTree(process.PID())
	return p, pin(ctx, b.cpus.proxy, p.pids...)
}

// findProgram looks on PATH and in /usr/sbin, where Debian installs servers.
func findProgram(program string) (string, error) {
	for _, path := range []string{program, filepath.Join("/usr/sbin", program)} {
		if found, err := exec.LookPath(path); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("%s is not installed", program)
}

func freeAddress() (string, error) {
	port, err := embedded.FreePort("")
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}

// awaitResponse returns when a server responds at address: nginx accepts connections before it has a worker.
func awaitResponse(ctx context.Context, process *embedded.Process, address string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := requestOnce(ctx, address)
		if err == nil {
			return nil
		}
		select {
		case <-ticker.C:
		case <-process.Done():
			return errors.Join(errors.New("it ended while starting"), process.Err())
		case <-ctx.Done():
			return err
		}
	}
}

func requestOnce(ctx context.Context, address string) error {
	c, err := dial(ctx, address)
	if err != nil {
		return err
	}
	defer c.close()
	return c.do(getRequest())
}
