package embedded

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// serverUser is the user that runs a Postgres server when this program runs as root, because Postgres refuses to run as root. The
// nil serverUser is the user of this program.
type serverUser struct {
	name     string
	uid, gid uint32
	caps     []uintptr
}

// findServerUser returns the user for a server: nil unless this program runs as root.
func findServerUser() (*serverUser, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(account.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(account.Gid, 10, 32)
		if uidErr != nil || gidErr != nil || uid == 0 {
			continue
		}
		return &serverUser{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("Postgres does not run as root and there is no user postgres or nobody to run it as: " +
		"run this as an ordinary user, or make one with: useradd --system postgres")
}

// NewServerDir makes a temporary directory for the files of a process that runs AsServer.
func NewServerDir() (string, error) {
	user, err := findServerUser()
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "intents-server-")
	if err != nil {
		return "", fmt.Errorf("make a directory for a server: %w", err)
	}
	return dir, user.chown(dir)
}

// setCredential makes a process run as u.
func (u *serverUser) setCredential(attr *syscall.SysProcAttr) {
	if u == nil {
		return
	}
	attr.Credential = &syscall.Credential{Uid: u.uid, Gid: u.gid}
	setAmbientCaps(attr, u.caps)
}

// chown makes u the owner of path.
func (u *serverUser) chown(path string) error {
	if u == nil {
		return nil
	}
	if err := os.Chown(path, int(u.uid), int(u.gid)); err != nil {
		return fmt.Errorf("change the owner to user %s: %w", u.name, err)
	}
	return nil
}

// ensureTraversable lets u enter each of dirs. If a directory on the path is closed to u, as /root is, u gets the capability
// to traverse it, provided that root has the capability itself.
func (u *serverUser) ensureTraversable(dirs ...string) error {
	if u == nil {
		return nil
	}
	for _, dir := range dirs {
		closed, err := u.firstUntraversable(dir)
		if err != nil {
			return err
		}
		if closed == "" {
			continue
		}
		pass, ok := traverseCapability()
		if !ok {
			return fmt.Errorf("the database runs as user %s, which cannot enter %s: choose a directory it can reach, or run: chmod a+x %s",
				u.name, closed, closed)
		}
		u.caps = []uintptr{pass}
	}
	return nil
}

// firstUntraversable is the topmost directory of the path to dir, dir included, that u may not enter; empty if there is none.
func (u *serverUser) firstUntraversable(dir string) (string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("resolve directory: %w", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", fmt.Errorf("resolve directory: %w", err)
	}
	closed := ""
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return "", fmt.Errorf("stat directory: %w", err)
		}
		if !u.mayTraverse(info) {
			closed = dir
		}
		if dir == filepath.Dir(dir) {
			return closed, nil
		}
	}
}

func (u *serverUser) mayTraverse(info os.FileInfo) bool {
	bit := os.FileMode(0o001)
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		switch {
		case stat.Uid == u.uid:
			bit = 0o100
		case stat.Gid == u.gid:
			bit = 0o010
		}
	}
	return info.Mode().Perm()&bit != 0
}
