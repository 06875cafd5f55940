package list

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The bounds of a file.
const (
	MaxEntries = 1_000_000
	MaxBytes   = 64 << 20
)

// File is one file of the list, as it was read.
type File struct {
	Path string
	// Entries are the different entries, exceptions included, and Skipped the lines that are no EVM address.
	Entries, Skipped int
	// SHA256 is that of the contents.
	SHA256 [sha256.Size]byte
	// Modified is the time of the last change.
	Modified time.Time

	entries []entry
	texts   []string
}

// FaultError is why a file cannot be used.
type FaultError struct {
	Path string
	// Line is 0 for the file as a whole.
	Line   int
	Reason string
}

func (e *FaultError) Error() string {
	if e.Line == 0 {
		return e.Path + " " + e.Reason
	}
	return fmt.Sprintf("%s line %d %s", e.Path, e.Line, e.Reason)
}

// ErrChanging is returned for a file that changed while it was read.
var ErrChanging = errors.New("the file changed while it was read")

// ReadAll reads all files of a list, or returns the error of the first that Read does not take.
func ReadAll(paths []string) ([]*File, error) {
	files := make([]*File, len(paths))
	for n, path := range paths {
		var err error
		if files[n], err = Read(path); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// Read reads one file. It returns a *FaultError for one that is unreadable or malformed, which wraps ErrChanging where the file is being
// written. A file without an entry is taken: Empty says so.
func Read(path string) (*File, error) {
	text, modified, err := read(path)
	if errors.Is(err, ErrChanging) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err != nil {
		return nil, &FaultError{Path: path, Reason: "cannot be read: " + cause(err)}
	}
	f := &File{Path: path, SHA256: sha256.Sum256(text), Modified: modified}
	p := parser{file: f, labels: map[string]uint32{"": 0}}
	f.texts = append(f.texts, "")
	if filepath.Ext(path) == ".json" {
		err = p.array(text)
	} else {
		err = p.lines(string(text))
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(f.entries, compareEntries)
	f.entries = slices.CompactFunc(f.entries, func(a, b entry) bool { return compareEntries(a, b) == 0 })
	f.Entries = len(f.entries)
	return f, nil
}

// Empty returns a *FaultError for a file without an entry, nil for another.
func (f *File) Empty() error {
	if f.Entries > 0 {
		return nil
	}
	return &FaultError{Path: f.Path, Reason: "has no entry: name a file with addresses, or leave the file out"}
}

// cause is an error of the file system without the path.
func cause(err error) string {
	if of, ok := errors.AsType[*os.PathError](err); ok {
		return of.Err.Error()
	}
	return err.Error()
}

// read returns the contents of a regular file that does not change meanwhile. A pipe would have no end.
func read(path string) (text []byte, modified time.Time, err error) {
	before, err := os.Stat(path)
	if err == nil && !before.Mode().IsRegular() {
		err = errors.New("it is no regular file")
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, time.Time{}, err
	}
	defer file.Close()
	if text, err = io.ReadAll(io.LimitReader(file, MaxBytes+1)); err != nil {
		return nil, time.Time{}, err
	}
	if len(text) > MaxBytes {
		return nil, time.Time{}, fmt.Errorf("it has more than %d bytes", MaxBytes)
	}
	after, err := os.Stat(path)
	if err == nil && (!Same(before, after) || after.Size() != int64(len(text))) {
		err = ErrChanging
	}
	return text, before.ModTime(), err
}

// Same reports whether two states of a path are one file without a change between them. Neither exists if both are nil.
func Same(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// Place is where a file states an address.
type Place struct {
	Path string
	Line int
	// Entry is the address in the file's notation, with ! before an exception, and Label its label.
	Entry, Label string
}

// Places returns where files state an address, exceptions included, file by file.
func Places(files []*File, address Address) (places []Place) {
	for _, f := range files {
		of := len(places)
		for _, e := range f.entries {
			if e.address == address {
				places = append(places, Place{f.Path, int(e.line), e.String(), f.texts[e.label]})
			}
		}
		slices.SortFunc(places[of:], func(a, b Place) int { return a.Line - b.Line })
	}
	return places
}

func (e entry) String() string {
	var text strings.Builder
	if e.exception {
		text.WriteByte('!')
	}
	if e.chain != everyChain {
		text.WriteString(boundPrefix + strconv.FormatUint(e.chain, 10) + ":")
	}
	text.WriteString(e.address.String())
	return text.String()
}
