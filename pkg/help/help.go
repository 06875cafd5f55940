// Package help reads the arguments by which every program of the service is asked for its help or its version.
package help

import (
	"flag"
	"fmt"
	"os"
	"slices"

	"intents.internal/pkg/telemetry"
)

// Asked reports whether the arguments ask for help: help as the first one, or -h, -help or --help anywhere.
func Asked(args []string) bool {
	return len(args) > 0 && args[0] == "help" || slices.ContainsFunc(args, func(arg string) bool { return arg == "-h" || arg == "-help" || arg == "--help" })
}

// VersionAsked reports whether the first argument is version, -version or --version.
func VersionAsked(args []string) bool {
	return len(args) > 0 && slices.Contains([]string{"version", "-version", "--version"}, args[0])
}

// Version is the line that a program of this name prints.
func Version(program string) string {
	version, revision := telemetry.Build()
	return fmt.Sprintf("%s %s (%s)\n", program, version, revision)
}

// FlagSet returns a flag set for the arguments that prints its usage to standard output if they ask for help, and to standard error if they
// are wrong. The caller exits with status 0 for its error flag.ErrHelp.
func FlagSet(name string, args []string) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	if Asked(args) {
		flags.SetOutput(os.Stdout)
	}
	return flags
}
