package telemetry

import (
	"runtime/debug"
	"testing"
)

func TestModuleVersion(t *testing.T) {
	t.Parallel()
	stamped := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	revision := debug.BuildSetting{Key: "vcs.revision", Value: "0a1b2c"}
	for name, c := range map[string]struct {
		info              *debug.BuildInfo
		known             bool
		version, revision string
	}{
		"nothing":      {nil, false, "", ""},
		"no stamp":     {stamped("(devel)"), true, "", ""},
		"a release":    {stamped("v1.2.3", revision), true, "v1.2.3", "0a1b2c"},
		"with changes": {stamped("(devel)", debug.BuildSetting{Key: "vcs.modified", Value: "true"}, revision), true, "", "0a1b2c+dirty"},
		"clean":        {stamped("(devel)", revision, debug.BuildSetting{Key: "vcs.modified", Value: "false"}), true, "", "0a1b2c"},
	} {
		if version, revision := moduleVersion(c.info, c.known); version != c.version || revision != c.revision {
			t.Errorf("%s: %q %q, want %q %q", name, version, revision, c.version, c.revision)
		}
	}
}
