// Package embedded gives a program a private, real Postgres and Redis, and child processes that cannot outlive it.
//
// It owns the finding, starting, watching and removing of those servers. It installs nothing on the machine, opens no
// Postgres port (its server listens on a Unix socket only), and speaks neither the Postgres nor the bun protocol: callers
// get a URL and bring their own driver.
//
// Postgres comes from the first of these that is there: the URL handed in; server binaries on the machine; Debian's or
// Ubuntu's own packages, fetched by apt in user mode into the cache directory. Redis comes from the URL handed in, from
// redis-server or valkey-server, or runs inside this program (miniredis).
//
// Beside such a Postgres there can be a streaming replica of it, and a PgBouncer if the machine has one.
//
// It runs on Linux, macOS and the BSDs; on Windows, run it inside WSL.
package embedded
