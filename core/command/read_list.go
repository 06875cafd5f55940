package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// maxListBytes bounds a list as it is read, decompressed. Uniswap's default list has 0.7 MiB.
const maxListBytes = 16 << 20

// maxRedirects bounds how often a download is sent elsewhere.
const maxRedirects = 5

// read returns the list's text and, for a URL, what to record as its source.
func (c tokenImport) read(ctx context.Context) (text []byte, published string, err error) {
	if !strings.Contains(c.Location, "://") {
		text, err = readListFile(c.Location)
		return text, "", err
	}
	location, err := url.Parse(c.Location)
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout,
		fmt.Errorf("it takes longer than --timeout=%s; raise it, or import the list from a file", c.Timeout))
	defer cancel()
	text, err = download(ctx, location)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, "", fmt.Errorf("download %s: %w", location.Redacted(), err)
	}
	// Credentials, which a user name or a query can be, are not recorded.
	public := url.URL{Scheme: location.Scheme, Host: location.Host, Path: location.Path}
	return text, public.String(), nil
}

// readListFile reads a file, or standard input for -.
func readListFile(name string) (text []byte, err error) {
	file := os.Stdin
	if name != "-" {
		if file, err = os.Open(name); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
	}
	if text, err = readBounded(file); err != nil {
		err = fmt.Errorf("read %s: %w", file.Name(), err)
	}
	return text, err
}

func readBounded(in io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxListBytes+1))
	if err == nil && len(text) > maxListBytes {
		err = fmt.Errorf("it has more than %d MiB; split the list", maxListBytes>>20)
	}
	return text, err
}

// download reads a list over https, or over http from this machine. It follows no redirect to another scheme.
func download(ctx context.Context, location *url.URL) ([]byte, error) {
	if location.Scheme != "https" && location.Scheme != "http" {
		return nil, fmt.Errorf("scheme %q is not supported; use https, or import the list from a file", location.Scheme)
	}
	client := &http.Client{
		Transport: listTransport(location.Scheme),
		CheckRedirect: func(next *http.Request, via []*http.Request) error {
			switch {
			case next.URL.Scheme != location.Scheme:
				return fmt.Errorf("a redirect to another scheme, %s, is not followed", next.URL.Redacted())
			case len(via) > maxRedirects:
				return fmt.Errorf("more than %d redirects", maxRedirects)
			}
			return nil
		},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, location.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, errors.Unwrap(err) // the URL is named already
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the answer is %s", response.Status)
	}
	body := &countingReader{in: response.Body}
	defer body.report(response.ContentLength)()
	return readBounded(body)
}

// listTransport dials loopback addresses only for http, where what arrives could be anyone's.
func listTransport(scheme string) *http.Transport {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableKeepAlives = true
	if scheme == "http" {
		transport.Proxy = nil
		transport.DialContext = (&net.Dialer{Timeout: 10 * time.Second, Control: onlyLoopback}).DialContext
	}
	return transport
}

func onlyLoopback(_, address string, _ syscall.RawConn) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if !net.ParseIP(host).IsLoopback() {
		return errors.New("http is for this machine only; use https")
	}
	return nil
}

// countingReader counts what is read through it.
type countingReader struct {
	in   io.Reader
	read atomic.Int64
}

func (r *countingReader) Read(buffer []byte) (int, error) {
	n, err := r.in.Read(buffer)
	r.read.Add(int64(n))
	return n, err
}

// report prints a line a second until stop is called. The total is -1 where the server does not say.
func (r *countingReader) report(total int64) (stop func()) {
	of := ""
	if total >= 0 {
		of = fmt.Sprintf(" of %d", total)
	}
	ticker, stopped := time.NewTicker(time.Second), make(chan struct{})
	var reporting sync.WaitGroup
	reporting.Go(func() {
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				fmt.Printf("downloaded %d%s bytes\n", r.read.Load(), of)
			case <-stopped:
				return
			}
		}
	})
	return func() { close(stopped); reporting.Wait() }
}
