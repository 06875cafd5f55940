package embedded

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// owner is the user a Postgres server runs as when this program runs as root, which Postgres refuses to run as. The nil
// owner stands for the user this program already is.
type owner struct {
	name     string
	uid, gid uint32
	caps     []uintptr
}

// findOwner names the user for a server: nobody else than the present one, unless that is root.
func findOwner() (*owner, error) {
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
		return &owner{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return nil, fmt.Errorf("Postgres does not run as root and there is no user postgres or nobody to run it as: " +
		"run this as an ordinary user, or make one with: useradd --system postgres")
}

// apply makes a process run as o.
func (o *owner) apply(attr *syscall.SysProcAttr) {
	if o == nil {
		return
	}
	attr.Credential = &syscall.Credential{Uid: o.uid, Gid: o.gid}
	setAmbientCaps(attr, o.caps)
}

// own hands path to o.
func (o *owner) own(path string) error {
	if o == nil {
		return nil
	}
	if err := os.Chown(path, int(o.uid), int(o.gid)); err != nil {
		return fmt.Errorf("hand over to user %s: %w", o.name, err)
	}
	return nil
}

// reach sees to it that o can enter each of dirs. Where a directory above is closed to it, as /root is, o gets the one
// capability that lets it pass, when root has that itself.
func (o *owner) reach(dirs ...string) error {
	if o == nil {
		return nil
	}
	for _, dir := range dirs {
		closed, err := o.closedOn(dir)
		if err != nil {
			return err
		}
		if closed == "" {
			continue
		}
		pass, ok := passCapability()
		if !ok {
			return fmt.Errorf("the database runs as user %s, which cannot enter %s: choose a directory it can reach, or run: chmod a+x %s",
				o.name, closed, closed)
		}
		o.caps = []uintptr{pass}
	}
	return nil
}

// closedOn is the first directory on the way to dir, dir included, that o may not enter; empty when all are open.
func (o *owner) closedOn(dir string) (string, error) {
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
			return "", fmt.Errorf("look at directory: %w", err)
		}
		if !o.mayEnter(info) {
			closed = dir
		}
		if dir == filepath.Dir(dir) {
			return closed, nil
		}
	}
}

func (o *owner) mayEnter(info os.FileInfo) bool {
	bit := os.FileMode(0o001)
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		switch {
		case stat.Uid == o.uid:
			bit = 0o100
		case stat.Gid == o.gid:
			bit = 0o010
		}
	}
	return info.Mode().Perm()&bit != 0
}
