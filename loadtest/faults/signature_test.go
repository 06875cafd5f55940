package faults_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"intents.internal/pkg/testkit/asynctest"
)

// Core is killed once it has verified a signature and before it has written it. Nothing of it is stored, and the client's repetition is answered as
// the first one would have been.
func TestSignature_CoreKilled(t *testing.T) {
	t.Parallel()
	db := shared.database
	core, fleet := startServices(t, db)
	s := &signatures{t: t, url: fleet[0].URL, key: db.newUnlimitedKeys(t, 1)[0]}
	path, signature := s.create()
	_, created := s.call(http.MethodGet, path, "")

	posted := make(chan int, 1)
	db.connect(t, func(ctx context.Context, conn *pgx.Conn) error {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `SELECT FROM transfers WHERE id = $1 FOR UPDATE`, created["id"]); err != nil {
			return err
		}
		go func() {
			status, _ := s.call(http.MethodPost, path+"/signature", signature)
			posted <- status
		}()
		db.awaitBlocked(t, conn.PgConn().PID()) // the write, as all that comes before it locks nothing
		core.Kill()
		return tx.Rollback(ctx)
	})
	if status := <-posted; status < 500 {
		t.Errorf("the client of a core that was killed was answered %d", status)
	}
	core.Start(t)
	core.AwaitReady(t)
	asynctest.Eventually(t, "the gateway sends requests to core", func() bool {
		status, _ := s.call(http.MethodGet, path, "")
		return status == http.StatusOK
	})
	if _, now := s.call(http.MethodGet, path, ""); !cmp.Equal(created, now) {
		t.Errorf("what was not written (-created +now):\n%s", cmp.Diff(created, now))
	}
	if status, answer := s.call(http.MethodGet, path+"/relay", ""); status != http.StatusConflict || answer["code"] != "NOT_SIGNED" {
		t.Errorf("relay before the repetition: %d %v", status, answer)
	}
	status, signed := s.call(http.MethodPost, path+"/signature", signature)
	signing, _ := signed["signing"].(map[string]any)
	if status != http.StatusOK || signing["signedAt"] == nil {
		t.Fatalf("the repetition: %d %v", status, signed)
	}
	signing["signedAt"] = nil
	if diff := cmp.Diff(created, signed); diff != "" {
		t.Errorf("the repetition (-created +signed):\n%s", diff)
	}
	if status, answer := s.call(http.MethodGet, path+"/relay", ""); status != http.StatusOK || answer["tx"] == nil {
		t.Errorf("relay: %d %v", status, answer)
	}
}

// awaitBlocked waits until a transaction waits for a lock of a connection.
func (d *database) awaitBlocked(t *testing.T, pid uint32) {
	t.Helper()
	asynctest.Eventually(t, "a transaction waits for a lock", func() (blocked bool) {
		d.connect(t, func(ctx context.Context, conn *pgx.Conn) error {
			return conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE $1 = ANY(pg_blocking_pids(pid)))`, int32(pid)).Scan(&blocked)
		})
		return blocked
	})
}

// signatures are requests about an intent that its user signs.
type signatures struct {
	t        *testing.T
	url, key string
}

// create makes a transfer of a token with ERC-3009 and returns its path, and the body with the signature of its typed data.
func (s *signatures) create() (path, signature string) {
	s.t.Helper()
	user, err := crypto.GenerateKey()
	if err != nil {
		s.t.Fatal(err)
	}
	status, made := s.call(http.MethodPost, "/v2/transfers", fmt.Sprintf(`{"signing":"erc3009","source":{"account":"%s:%s","token":"%[1]s:%[3]s","amount":"1000"},
		"destination":{"account":"%[1]s:0x70997970C51812dc3A010C7d01b50e0d17dc79C8"}}`, quotedTo, crypto.PubkeyToAddress(user.PublicKey).Hex(), usdcBase))
	signing, _ := made["signing"].(map[string]any)
	digest, _ := signing["digest"].(string)
	if status != http.StatusCreated || digest == "" {
		s.t.Fatalf("%d %v", status, made)
	}
	signed, err := crypto.Sign(common.HexToHash(digest).Bytes(), user)
	if err != nil {
		s.t.Fatal(err)
	}
	return fmt.Sprintf("/v2/transfers/%s", made["id"]), `{"signature":"` + hexutil.Encode(signed) + `"}`
}

// call sends a request, once. The status is 0 where no answer came.
func (s *signatures) call(method, path, body string) (status int, answer map[string]any) {
	one := sample{key: s.key}
	text, err := one.send(context.WithoutCancel(s.t.Context()), direct, method, s.url+path, body, "")
	if err != nil || one.fault != "" || json.Unmarshal(text, &answer) != nil {
		s.t.Errorf("%s %s: %d %s %v", method, path, one.status, one.fault, err)
	}
	return one.status, answer
}
