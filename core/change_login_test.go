package main_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"intents.internal/pkg/asynctest"
)

// makeRole makes another user who may do what core's may, until the test ends.
func (c *changed) makeRole() {
	c.t.Helper()
	u, err := url.Parse(c.database)
	if err != nil {
		c.t.Fatal(err)
	}
	role := fmt.Sprintf("role_%08x", rand.Uint32())
	u.User = url.UserPassword(role, "pass word")
	c.asRole = u.String()
	c.execute("CREATE ROLE " + role + " LOGIN PASSWORD 'pass word'")
	c.execute("DO $$ BEGIN EXECUTE format('GRANT %I TO " + role + "', current_user); END $$")
	c.t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		<-c.ended
		c.execute("DROP ROLE " + role)
	})
}

func (c *changed) execute(sql string) {
	c.t.Helper()
	ctx := context.WithoutCancel(c.t.Context())
	conn, err := pgx.Connect(ctx, c.database)
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		c.t.Fatalf("%s: %v", sql, err)
	}
}

// connects ends core's connections and reports whether the role has made any of those that come in their place.
func (c *changed) connects() bool {
	c.t.Helper()
	conn, err := pgx.Connect(c.t.Context(), c.database)
	if err != nil {
		c.t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(c.t.Context()))
	const ours = "FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'intents-core'"
	if _, err := conn.Exec(c.t.Context(), "SELECT pg_terminate_backend(pid) "+ours); err != nil {
		c.t.Fatal(err)
	}
	var as []string
	asynctest.Eventually(c.t, "core connects again", func() bool {
		c.lets(gatewaySecret) // has core ask whether its database is there
		err := conn.QueryRow(c.t.Context(), "SELECT array_agg(usename::text) "+ours).Scan(&as)
		return err == nil && len(as) >= 2 // the replica's, too
	})
	return slices.ContainsFunc(as, func(user string) bool { return strings.HasPrefix(user, "role_") })
}
