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

// clusterTimeout bounds the making of a new database cluster; it takes about a second.
const clusterTimeout = 2 * time.Minute

// makeCluster makes a new cluster at path with the superuser and database intents, all of it or nothing. Without durable
// nothing is synced to disk.
func (b *binaries) makeCluster(ctx context.Context, o *owner, path string, durable bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, clusterTimeout, errors.New("it took too long"))
	defer cancel()
	work := path + ".new"
	if err := freshDir(o, work); err != nil {
		return err
	}
	locale := "C.UTF-8"
	if runtime.GOOS == "darwin" {
		locale = "C"
	}
	initdb := Command{
		Path:  filepath.Join(b.dir, "initdb"),
		Args:  []string{"-D", work, "-U", "intents", "-A", "trust", "-E", "UTF8", "--locale", locale},
		Env:   b.env,
		Dir:   "/",
		owner: o,
	}
	create := Command{
		Path:  filepath.Join(b.dir, "postgres"),
		Args:  []string{"--single", "-D", work, "postgres"},
		Env:   b.env,
		Dir:   "/",
		Input: "CREATE DATABASE intents\n",
		owner: o,
	}
	if !durable {
		initdb.Args = append(initdb.Args, "--no-sync")
		create.Args = append([]string{"--single", "-F"}, create.Args[1:]...)
	}
	if err := Run(ctx, initdb); err != nil {
		return err
	}
	// The standalone server reports a failed command and still ends with status 0.
	text, err := output(ctx, create)
	if err == nil && strings.Contains(text, "ERROR:") {
		err = fmt.Errorf("create database: %s", strings.TrimSpace(text))
	}
	if err != nil {
		return err
	}
	if err := os.Rename(work, path); err != nil {
		return fmt.Errorf("put the new cluster in place: %w", err)
	}
	return nil
}

// copyTemplate makes a cluster at path by copying one that the cache directory keeps for this version of Postgres: a tenth
// of the time that making one takes.
func (b *binaries) copyTemplate(ctx context.Context, o *owner, path string, log func(string)) error {
	cache, err := CacheDir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return fmt.Errorf("make cache directory: %w", err)
	}
	if err := o.reach(cache); err != nil {
		return err
	}
	template := filepath.Join(cache, "postgres-template-"+b.templateKey(o))
	if err := b.ensureTemplate(ctx, o, template, log); err != nil {
		return err
	}
	if err := freshDir(o, path); err != nil {
		return err
	}
	return Run(ctx, Command{Path: "cp", Args: []string{"-R", template + "/.", path}, Dir: "/", owner: o})
}

func (b *binaries) ensureTemplate(ctx context.Context, o *owner, template string, log func(string)) error {
	lock, err := AwaitLock(ctx, template+".lock", func() {})
	if err != nil {
		return err
	}
	defer lock.Unlock()
	if _, err := os.Stat(filepath.Join(template, "PG_VERSION")); err == nil {
		return nil
	}
	log("making a database template for Postgres " + b.version)
	return b.makeCluster(ctx, o, template, false)
}

// templateKey differs wherever a template cannot be shared: by version and programs, and by the user it belongs to.
func (b *binaries) templateKey(o *owner) string {
	uid := os.Geteuid()
	if o != nil {
		uid = int(o.uid)
	}
	return b.version + "-" + shortHash(fmt.Sprint(b.dir, uid))
}

// clusterName is what the server's processes call themselves in the process list, after the directory of their data.
func clusterName(data string) string { return "intents_" + shortHash(data) }

func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:4])
}

// freshDir makes an empty directory that is o's alone.
func freshDir(o *owner, path string) error {
	if err := os.RemoveAll(path); err != nil {
		return fmt.Errorf("clear directory: %w", err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	return o.own(path)
}
