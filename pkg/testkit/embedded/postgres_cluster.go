package embedded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// initTimeout bounds the creation of a database cluster, which takes about a second.
const initTimeout = 2 * time.Minute

// initCluster creates a cluster at path with the superuser intents and the database intents. If it fails, there is nothing at
// path. Unless durable, it does not sync to disk.
func (b *binaries) initCluster(ctx context.Context, u *serverUser, path string, durable bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, initTimeout, errors.New("it took too long"))
	defer cancel()
	work := path + ".new"
	if err := makeEmptyDir(u, work); err != nil {
		return err
	}
	locale := "C.UTF-8"
	if runtime.GOOS == "darwin" {
		locale = "C"
	}
	initdb := Command{
		Path: filepath.Join(b.dir, "initdb"),
		Args: []string{"-D", work, "-U", "intents", "-A", "trust", "-E", "UTF8", "--locale", locale},
		Env:  b.env,
		Dir:  "/",
		user: u,
	}
	create := Command{
		Path:  filepath.Join(b.dir, "postgres"),
		Args:  []string{"--single", "-D", work, "postgres"},
		Env:   b.env,
		Dir:   "/",
		Input: "CREATE DATABASE intents\n",
		user:  u,
	}
	if !durable {
		initdb.Args = append(initdb.Args, "--no-sync")
		create.Args = append([]string{"--single", "-F"}, create.Args[1:]...)
	}
	if err := Run(ctx, initdb); err != nil {
		return err
	}
	// The single-user server exits with status 0 also after an error.
	text, err := output(ctx, create)
	if err == nil && strings.Contains(text, "ERROR:") {
		err = fmt.Errorf("create database: %s", strings.TrimSpace(text))
	}
	if err != nil {
		return err
	}
	if err := os.Rename(work, path); err != nil {
		return fmt.Errorf("move the new cluster to %s: %w", path, err)
	}
	return nil
}

// copyTemplate creates a cluster at path as a copy of the template in the cache directory for this version of Postgres, which
// takes a tenth of the time of initdb.
func (b *binaries) copyTemplate(ctx context.Context, u *serverUser, path string, log func(string)) error {
	cache, err := CacheDir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return fmt.Errorf("create cache directory: %w", err)
	}
	if err := u.ensureTraversable(cache); err != nil {
		return err
	}
	template := filepath.Join(cache, "postgres-template-"+b.templateKey(u))
	if err := b.ensureTemplate(ctx, u, template, log); err != nil {
		return err
	}
	return copyCluster(ctx, u, template, path)
}

// copyCluster copies a cluster whose server has stopped.
func copyCluster(ctx context.Context, u *serverUser, from, to string) error {
	if err := makeEmptyDir(u, to); err != nil {
		return err
	}
	return Run(ctx, Command{Path: "cp", Args: []string{"-R", from + "/.", to}, Dir: "/", user: u})
}

func (b *binaries) ensureTemplate(ctx context.Context, u *serverUser, template string, log func(string)) error {
	lock, err := AwaitLock(ctx, template+".lock", func() {})
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if _, err := os.Stat(filepath.Join(template, "PG_VERSION")); err == nil {
		return nil
	}
	log("creating a database template for Postgres " + b.version)
	return b.initCluster(ctx, u, template, false)
}

// templateKey differs between templates that cannot be shared: by version and directory of the binaries, and by user.
func (b *binaries) templateKey(u *serverUser) string {
	uid := os.Geteuid()
	if u != nil {
		uid = int(u.uid)
	}
	return b.version + "-" + shortHash(fmt.Sprint(b.dir, uid))
}

// clusterName is the setting cluster_name, which the titles of the server's processes begin with. It identifies the data
// directory.
func clusterName(data string) string { return "intents_" + shortHash(data) }

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// makeEmptyDir creates an empty directory that only u can read.
func makeEmptyDir(u *serverUser, path string) error {
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("clear directory: %w", err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return fmt.Errorf("create directory: %w", err)
	}
	return u.chown(path)
}
