package stack_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The test binary stands in for core, gateway and chains when it is run under their names, so that these tests are about the stack
// alone. The stand-in core keeps its accounts and keys in the file STAND_IN_STATE and ends at once, with a complaint, while
// the file STAND_IN_BROKEN exists.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "core":
		os.Exit(standInCore())
	case "gateway":
		os.Exit(standInGateway())
	case "chains":
		os.Exit(standInChains())
	}
	os.Exit(m.Run())
}

func standInCore() int {
	if len(os.Args) > 1 && os.Args[1] != "serve" {
		fmt.Println("did", os.Args[1:])
		return 0
	}
	if _, err := os.Stat(os.Getenv("STAND_IN_BROKEN")); err == nil {
		fmt.Println("the stand-in is broken")
		return 1
	}
	if file := os.Getenv("CORE_RPC_FILE"); file != "" {
		text, _ := os.ReadFile(file)
		fmt.Println("watches the chains of", file, strings.TrimSpace(string(text)))
	}
	if file := os.Getenv("CORE_QUOTES_FILE"); file != "" {
		text, _ := os.ReadFile(file)
		fmt.Println("asks in", os.Getenv("CORE_QUOTES_ALLOW"), "the providers", strings.TrimSpace(string(text)))
	}
	fmt.Println("seals with", os.Getenv("CORE_WEBHOOK_SECRET_KEY"))
	mux := http.NewServeMux()
	mux.HandleFunc("POST /auth/sign-up/email", func(w http.ResponseWriter, r *http.Request) {
		withState(func(s *state) {
			request := body(r)
			if _, exists := s.Passwords[request["email"]]; exists {
				w.WriteHeader(http.StatusUnprocessableEntity)
				return
			}
			s.Passwords[request["email"]] = request["password"]
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "yes", Path: "/"})
		})
	})
	mux.HandleFunc("POST /auth/sign-in/email", func(w http.ResponseWriter, r *http.Request) {
		withState(func(s *state) {
			request := body(r)
			if s.Passwords[request["email"]] != request["password"] {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			http.SetCookie(w, &http.Cookie{Name: "session", Value: "yes", Path: "/"})
		})
	})
	mux.HandleFunc("POST /auth/api-key/create", func(w http.ResponseWriter, r *http.Request) {
		if _, err := r.Cookie("session"); err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		withState(func(s *state) {
			key := "sk_" + body(r)["environment"] + "_" + rand.Text()
			s.Keys = append(s.Keys, key)
			_ = json.NewEncoder(w).Encode(map[string]string{"key": key})
		})
	})
	mux.HandleFunc("GET /v2/tokens", func(w http.ResponseWriter, r *http.Request) {
		withState(func(s *state) {
			if !slices.Contains(s.Keys, r.Header.Get("X-Api-Key")) {
				w.WriteHeader(http.StatusForbidden)
			}
		})
	})
	return serve("CORE", mux)
}

func standInGateway() int {
	first, _, _ := strings.Cut(os.Getenv("GATEWAY_CORE_URL"), ",") // all share one state
	core, err := url.Parse(first)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return serve("GATEWAY", httputil.NewSingleHostReverseProxy(core))
}

// standInChains says how it was started, and that it is ready unless the file broken is beside its data.
func standInChains() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fmt.Println("runs", os.Args[1:], "with", os.Getenv("CHAINS_API_KEY"))
	if _, err := os.Stat(filepath.Join(filepath.Dir(os.Args[2]), "broken")); err == nil {
		fmt.Println(`{"level":"ERROR","msg":"chains failed","error":"the stand-in is broken"}`)
		return 1
	}
	fmt.Println(`{"level":"INFO","msg":"ready"}`)
	<-ctx.Done()
	fmt.Println("stopped")
	return 0
}

// serve serves until TERM, and then says that it has stopped.
func serve(prefix string, handler http.Handler) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ready := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	failed := make(chan error, 2)
	// Ready means that the service listens, so its operations listener comes second.
	for _, listening := range []struct {
		variable string
		handler  http.Handler
	}{{"_LISTEN", handler}, {"_OPS_LISTEN", ready}} {
		var config net.ListenConfig
		listener, err := config.Listen(ctx, "tcp", os.Getenv(prefix+listening.variable))
		if err != nil {
			fmt.Println(err)
			return 1
		}
		server := &http.Server{Handler: listening.handler, ReadHeaderTimeout: time.Minute}
		go func() { failed <- server.Serve(listener) }()
	}
	select {
	case err := <-failed:
		fmt.Println(err)
		return 1
	case <-ctx.Done():
		fmt.Println("stopped")
		return 0
	}
}

type state struct {
	Passwords map[string]string
	Keys      []string
}

var stateLock sync.Mutex

func withState(change func(*state)) {
	stateLock.Lock()
	defer stateLock.Unlock()
	s := state{Passwords: map[string]string{}}
	if text, err := os.ReadFile(os.Getenv("STAND_IN_STATE")); err == nil {
		_ = json.Unmarshal(text, &s)
	}
	change(&s)
	text, _ := json.Marshal(s)
	_ = os.WriteFile(os.Getenv("STAND_IN_STATE"), text, 0o600)
}

func body(r *http.Request) map[string]string {
	var fields map[string]string
	_ = json.NewDecoder(r.Body).Decode(&fields)
	return fields
}
