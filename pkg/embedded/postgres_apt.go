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

// aptTimeout bounds the fetching of the packages; it takes about 20 s on a good line.
const aptTimeout = 10 * time.Minute

// treeName is the directory below the cache directory that the packages are unpacked into.
const treeName = "postgres-apt"

// fetchedBinaries are the server that fetchBinaries has fetched before.
func fetchedBinaries(ctx context.Context) (*binaries, error) {
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	return inspectTree(ctx, filepath.Join(cache, treeName))
}

// fetchBinaries fetches the server of Debian's or Ubuntu's own packages in user mode: apt works on lists and caches of its
// own, downloads and verifies, and the packages are unpacked below the cache directory. It needs no root and installs
// nothing. Several processes may ask at once; one fetches, the others wait for it.
func fetchBinaries(ctx context.Context, log func(string)) (*binaries, error) {
	for _, tool := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, noPostgres(nil)
		}
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, fmt.Errorf("make cache directory: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, aptTimeout, fmt.Errorf("gave up after %s", aptTimeout))
	defer cancel()
	root := filepath.Join(cache, treeName)
	lock, err := AwaitLock(ctx, root+".lock", func() { log("another process is fetching Postgres: waiting for it") })
	if err != nil {
		return nil, err
	}
	defer lock.Unlock()
	if found, err := inspectTree(ctx, root); err == nil {
		return found, nil
	}
	fetch := aptFetch{root: root, work: root + ".new", log: log}
	if err := fetch.run(ctx); err != nil {
		return nil, noPostgres(err)
	}
	return inspectTree(ctx, root)
}

// inspectTree finds the server in an unpacked tree.
func inspectTree(ctx context.Context, root string) (*binaries, error) {
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

// aptFetch is one fetching of the packages. Its holder has the lock.
type aptFetch struct {
	root string // where the unpacked tree ends up, all of it or nothing
	work string
	log  func(string)
	// complaint is apt's first one. An unreachable server is only a warning when the lists are read, and shows later as a
	// package that does not exist.
	complaint string
}

func (f *aptFetch) run(ctx context.Context) error {
	f.log("no Postgres on this machine: fetching the packages of this system with apt, in user mode (nothing is installed)")
	defer func() { _ = os.RemoveAll(f.work) }()
	if err := f.makeDirs(); err != nil {
		return err
	}
	f.log("apt: reading the lists of packages")
	if err := f.apt(ctx, func(string) {}, "update"); err != nil {
		return err
	}
	plan := []string{"install", "--no-install-recommends", "--yes", "postgresql"}
	count, size, err := f.size(ctx, plan)
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

// makeDirs makes the directories that apt works in.
func (f *aptFetch) makeDirs() error {
	for _, dir := range []string{"state/lists/partial", "cache/archives/partial", "tree"} {
		if err := os.RemoveAll(filepath.Join(f.work, dir)); err != nil {
			return fmt.Errorf("clear work directory: %w", err)
		}
		if err := os.MkdirAll(filepath.Join(f.work, dir), 0o755); err != nil {
			return fmt.Errorf("make work directory: %w", err)
		}
	}
	// apt locks the directory that this file is in, so it works on a copy.
	status, err := os.ReadFile("/var/lib/dpkg/status")
	if err != nil {
		return fmt.Errorf("read the list of installed packages: %w", err)
	}
	if err := os.WriteFile(filepath.Join(f.work, "state/status"), status, 0o644); err != nil {
		return fmt.Errorf("copy the list of installed packages: %w", err)
	}
	return nil
}

// size asks apt how much plan has to download.
func (f *aptFetch) size(ctx context.Context, plan []string) (count int, bytes int64, err error) {
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
	if _, err := inspectTree(ctx, tree); err != nil {
		return fmt.Errorf("try the unpacked server: %w", err)
	}
	if err := os.RemoveAll(f.root); err != nil {
		return fmt.Errorf("remove the broken tree: %w", err)
	}
	if err := os.Rename(tree, f.root); err != nil {
		return fmt.Errorf("put the tree in place: %w", err)
	}
	return nil
}

// apt runs apt-get on directories of our own, and on the system's sources, keys and list of what is installed.
func (f *aptFetch) apt(ctx context.Context, output func(string), args ...string) error {
	options := []string{
		"-q",
		"-o", "Dir::State=" + filepath.Join(f.work, "state"),
		"-o", "Dir::State::status=" + filepath.Join(f.work, "state/status"),
		"-o", "Dir::Cache=" + filepath.Join(f.work, "cache"),
		"-o", "Dir::Log=" + f.work,
		// apt would otherwise drop root for a user who may not write there.
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
			if text, ok := parseComplaint(line); ok && f.complaint == "" {
				f.complaint = text
			}
			output(line)
		},
	})
	if err != nil && ctx.Err() == nil && f.complaint != "" {
		return errors.New(f.complaint)
	}
	return err
}

// parseComplaint takes the text out of an error of apt-get's, or of its warning that a server could not be reached.
func parseComplaint(line string) (text string, ok bool) {
	if text, ok = strings.CutPrefix(line, "E: "); ok {
		return text, true
	}
	text, ok = strings.CutPrefix(line, "W: ")
	return text, ok && strings.HasPrefix(text, "Failed to fetch ")
}

// parseURI reads the size out of a line of apt-get --print-uris: 'http://…/x.deb' x.deb 1234 SHA256:….
func parseURI(line string) (size int64, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 3 || !strings.HasPrefix(line, "'") || !strings.HasSuffix(fields[1], ".deb") {
		return 0, false
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	return size, err == nil
}

// parseGet reads the number and the package out of a line of apt-get's progress:
// Get:3 http://mirror.example/debian bookworm/main amd64 libicu72 amd64 72.1-3 [9376 kB].
func parseGet(line string) (number, name string, ok bool) {
	fields := strings.Fields(line)
	if len(fields) < 5 {
		return "", "", false
	}
	number, ok = strings.CutPrefix(fields[0], "Get:")
	return number, fields[4], ok
}
