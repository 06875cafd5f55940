package telemetry

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// version and revision are set by the linker (-X) in builds without version control, such as in a container.
var version, revision string

// Build returns the version and the revision that this process was built from, "unknown" for each that is unknown.
func Build() (builtVersion, builtRevision string) {
	fromGo, sourced := moduleVersion(debug.ReadBuildInfo())
	return cmp.Or(version, fromGo, "unknown"), cmp.Or(revision, sourced, "unknown")
}

// newBuildInfo returns a metric that is always 1 and has the build in its labels.
func newBuildInfo() prometheus.Collector {
	version, revision := Build()
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "intents_build_info",
		Help: "Always 1; the labels tell what was built. More than one version or revision of a service means that a roll-out is in progress, or stuck.",
		ConstLabels: prometheus.Labels{
			"version":    version,
			"revision":   revision,
			"go_version": runtime.Version(),
		},
	}, func() float64 { return 1 })
}

// moduleVersion returns what the go command recorded in the binary, empty if there is nothing. The revision of a build with
// uncommitted changes ends in "+dirty".
func moduleVersion(info *debug.BuildInfo, ok bool) (version, revision string) {
	if !ok {
		return "", ""
	}
	if info.Main.Version != "(devel)" {
		version = info.Main.Version
	}
	dirty := ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			revision = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			dirty = "+dirty"
		}
	}
	if revision != "" {
		revision += dirty
	}
	return version, revision
}
