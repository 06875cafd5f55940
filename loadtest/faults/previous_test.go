package faults_test

import (
	"bytes"
	"flag"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"intents.internal/deploy/stack"
	"intents.internal/pkg/testkit/embedded"
)

var previous = flag.String("previous", "", "a directory with the programs core and gateway of another version, for TestUpgrade")

// released is the commit that upgrades start from; each release moves it on.
const released = "667caacbc047bc01a85c11b1f703e73c637fb4f4"

// previousBinaries is where the programs of the version before this one are: those of -previous, or the released ones, which
// it builds.
func previousBinaries(t *testing.T) string {
	t.Helper()
	if *previous != "" {
		return *previous
	}
	if !full() {
		t.Skip("builds another version: set CI=true, or -args -strict, or -args -previous DIRECTORY")
	}
	root, err := stack.FindRoot()
	if err != nil {
		t.Fatal(err)
	}
	source, binaries := t.TempDir(), t.TempDir()
	archive := filepath.Join(source, "source.tar")
	if _, err := git(root, "archive", "--output="+archive, released); err != nil {
		t.Fatal(err)
	}
	for _, command := range []embedded.Command{
		{Path: "tar", Args: []string{"-xf", archive}, Dir: source},
		{Path: "go", Args: []string{"build", "-buildvcs=false", "-o", binaries, "./core", "./gateway"}, Dir: source},
	} {
		if err := embedded.Run(t.Context(), command); err != nil {
			t.Fatal(err)
		}
	}
	return binaries
}

func git(root string, args ...string) (string, error) {
	// A checkout of another user is read all the same.
	command := exec.Command("git", append([]string{"-C", root, "-c", "safe.directory=*"}, args...)...) //nolint:noctx // it is short
	var complaint bytes.Buffer
	command.Stderr = &complaint
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, complaint.String())
	}
	return strings.TrimSpace(string(output)), nil
}
