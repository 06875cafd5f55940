// Package embedded runs private Postgres, Redis and SMTP servers for a program, and child processes that cannot outlive it.
//
// It finds, starts, supervises and removes those servers. It installs nothing on the machine, and its Postgres listens on a Unix
// socket only. Callers get a URL and choose their own driver.
//
// Postgres is the first of these that exists: the configured URL; server binaries on the machine; Debian's or Ubuntu's packages,
// which apt downloads in user mode into the cache directory. Redis is the first of these that exists: the configured URL;
// redis-server or valkey-server on PATH; miniredis inside this program.
//
// A private Postgres can have a streaming replica, and a PgBouncer in front of it if the machine has one.
//
// The SMTP server accepts mail and delivers none.
//
// NodeModules installs the npm packages that tests run, below the cache directory.
//
// The package runs on Linux, macOS and the BSDs; on Windows, run it inside WSL.
package embedded
