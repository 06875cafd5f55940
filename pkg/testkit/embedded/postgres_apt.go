package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// aptTimeout bounds the download of the packages, which takes about 20 s on a fast network.
const aptTimeout = 10 * time.Minute

// packagesDir is the directory of the unpacked packages, below the cache directory.
const packagesDir = "postgres-apt"

// fetchedBinaries returns the binaries of an earlier fetchBinaries.
func fetchedBinaries(ctx context.Context) (*binaries, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	return inspectPackages(ctx, filepath.Join(cache, packagesDir))
}

// fetchBinaries downloads the server packages of Debian or Ubuntu in user mode: apt downloads and verifies them with state and
// cache directories of its own, and they are unpacked below the cache directory. It needs no root and installs nothing. If
// several processes call it at once, one downloads and the others wait.
func fetchBinaries(ctx context.Context, log func(string)) (*binaries, error) {
	for _, tool := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, notFoundError(nil)
		}
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, fmt.Errorf("create cache directory: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, aptTimeout, fmt.Errorf("gave up after %s", aptTimeout))
	defer cancel()
	root := filepath.Join(cache, packagesDir)
	lock, err := AwaitLock(ctx, root+".lock", func() { log("waiting for another process that downloads Postgres") })
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	if found, err := inspectPackages(ctx, root); err == nil {
		return found, nil
	}
	fetch := aptFetch{root: root, work: root + ".new", log: log}
	if err := fetch.run(ctx); err != nil {
		return nil, notFoundError(err)
	}
	return inspectPackages(ctx, root)
}

// inspectPackages inspects the server in unpacked packages.
func inspectPackages(ctx context.Context, root string) (*binaries, error) {
	dirs, _ := filepath.Glob(filepath.Join(root, "usr/lib/postgresql/*/bin"))
	if len(dirs) == 0 {
		return nil, ErrNoPostgres
	}
	var libraries []string
	for _, pattern := range []string{"usr/lib/*-linux-*", "lib/*-linux-*"} {
		found, _ := filepath.Glob(filepath.Join(root, pattern))
		libraries = append(libraries, found...)
	}
	return inspect(ctx, dirs[len(dirs)-1], "Debian packages in "+root, libraries)
}

// aptFetch downloads and unpacks the packages. Its owner holds the lock.
type aptFetch struct {
	root string // where the unpacked packages are moved at the end
	work string
	log  func(string)
	// firstError is apt's first error, or its first warning of a failed download: apt only warns of a server that it cannot reach
	// for the package lists, and later reports that the package does not exist.
	firstError string
}

func (f *aptFetch) run(ctx context.Context) error {
	f.log("no Postgres on this machine: downloading the packages of this system with apt, in user mode (nothing is installed)")
	defer func() { _ = os.RemoveAll(f.work) }()
	if err := f.makeDirs(); err != nil {
		return err
	}
	f.log("apt: updating the package lists")
	if err := f.apt(ctx, func(string) {}, "update"); err != nil {
		return err
	}
	plan := []string{"install", "--no-install-recommends", "--yes", "postgresql"}
	count, size, err := f.downloadSize(ctx, plan)
	if err != nil {
		return err
	}
	f.log(fmt.Sprintf("apt: downloading %d packages, %d MB", count, size>>20))
	progress := func(line string) {
		if number, name, ok := parseGet(line); ok {
			f.log(fmt.Sprintf("apt: %s of %d: %s", number, count, name))
		}
	}
	if err := f.apt(ctx, progress, append([]string{"--download-only"}, plan...)...); err != nil {
		return err
	}
	return f.unpack(ctx)
}

// makeDirs creates the directories that apt works in.
func (f *aptFetch) makeDirs() error {
	for _, dir := range []string{"state/lists/partial", "cache/archives/partial", "tree"} {
		if err := os.RemoveAll(filepath.Join(f.work, dir)); err != nil {
			return fmt.Errorf("clear work directory: %w", err)
		}
		if err := os.MkdirAll(filepath.Join(f.work, dir), 0o755); err != nil {
			return fmt.Errorf("create work directory: %w", err)
		}
	}
	// apt locks the directory of this file, so it gets a copy.
	status, err := os.ReadFile("/var/lib/dpkg/status")
	if err != nil {
		return fmt.Errorf("read the list of installed packages: %w", err)
	}
	if err := os.WriteFile(filepath.Join(f.work, "state/status"), status, 0o644); err != nil {
		return fmt.Errorf("copy the list of installed packages: %w", err)
	}
	return nil
}

// downloadSize is the number of packages that plan downloads, and their size.
func (f *aptFetch) downloadSize(ctx context.Context, plan []string) (count int, bytes int64, err error) {
	err = f.apt(ctx, func(line string) {
		if size, ok := parseURI(line); ok {
			count++
			bytes += size
		}
	}, append([]string{"--print-uris"}, plan...)...)
	return count, bytes, err
}

func (f *aptFetch) unpack(ctx context.Context) error {
	packages, _ := filepath.Glob(filepath.Join(f.work, "cache/archives/*.deb"))
	if len(packages) == 0 {
		return errors.New("apt downloaded nothing")
	}
	f.log(fmt.Sprintf("apt: unpacking %d packages into %s", len(packages), f.root))
	tree := filepath.Join(f.work, "tree")
	for _, file := range packages {
		if err := Run(ctx, Command{Path: "dpkg-deb", Args: []string{"--extract", file, tree}}); err != nil {
			return err
		}
	}
	if _, err := inspectPackages(ctx, tree); err != nil {
		return fmt.Errorf("run the unpacked server: %w", err)
	}
	if err := os.RemoveAll(f.root); err != nil {
		return fmt.Errorf("remove the earlier packages: %w", err)
	}
	if err := os.Rename(tree, f.root); err != nil {
		return fmt.Errorf("move the unpacked packages to %s: %w", f.root, err)
	}
	return nil
}

// apt runs apt-get with separate state and cache directories, and the system's sources, keys and list of installed packages.
func (f *aptFetch) apt(ctx context.Context, output func(string), args ...string) error {
	options := []string{
		"-q",
		"-o", "Dir::State=" + filepath.Join(f.work, "state"),
		"-o", "Dir::State::status=" + filepath.Join(f.work, "state/status"),
		"-o", "Dir::Cache=" + filepath.Join(f.work, "cache"),
		"-o", "Dir::Log=" + f.work,
		// Otherwise apt running as root drops to a user who may not write to these directories.
		"-o", "APT::Sandbox::User=root",
		"-o", "Acquire::Retries=2",
		"-o", "Acquire::http::Timeout=30",
		"-o", "Acquire::https::Timeout=30",
		"-o", "Acquire::Languages=none",
	}
	err := Run(ctx, Command{
		Path:         "apt-get",
		Args:         append(options, args...),
		Env:          append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive"),
		OrphanSignal: syscall.SIGTERM,
		Output: func(line string) {
			if text, ok := parseAptError(line); ok && f.firstError == "" {
				f.firstError = text
			}
			output(line)
		},
	})
	if err != nil && ctx.Err() == nil && f.firstError != "" {
		return errors.New(f.firstError)
	}
	return err
}

// parseAptError returns the text of an error of apt-get, or of its warning that a download failed.
func parseAptError(line string) (text string, ok bool) {
	if text, ok = strings.CutPrefix(line, "E: "); ok {
		return text, true
	}
	text, ok = strings.CutPrefix(line, "W: ")
	return text, ok && strings.HasPrefix(text, "Failed to fetch ")
}

// parseURI returns the size in a line of apt-get --print-uris: 'http://…/x.deb' x.deb 1234 SHA256:….
func parseURI(line string) (size int64, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 3 || !strings.HasPrefix(line, "'") || !strings.HasSuffix(fields[1], ".deb") {
		return 0, false
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	return size, err == nil
}

// parseGet returns the number and the package in a progress line of apt-get:
// Get:3 http://mirror.example/debian bookworm/main amd64 libicu72 amd64 72.1-3 [9376 kB].
func parseGet(line string) (number, name string, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 5 {
		return "", "", false
	}
	number, ok = strings.CutPrefix(fields[0], "Get:")
	return number, fields[4], ok
}
