package manifests_test

import (
	"path"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
)

// Every container mounts volumes of its pod, all of them and only to read, and its settings name files and directories that are mounted:
// in "all on", each that a setting can name.
func TestVolumes(t *testing.T) {
	t.Parallel()
	all := map[string][]string{
		"core":    {"CORE_ENV_FILE", "CORE_QUOTES_FILE", "CORE_RPC_FILE", "CORE_SCREENING_FILE", "SSL_CERT_DIR"},
		"gateway": {"GATEWAY_ENV_FILE", "SSL_CERT_DIR"},
		"migrate": {"SSL_CERT_DIR"},
	}
	for name, values := range releases {
		for component, pod := range templates(objects(t, values)) {
			for _, c := range own(pod) {
				mounted := mountedFiles(t, pod.Spec.Volumes, c)
				var named []string
				for setting, value := range settingsOf(t, c) {
					if !strings.HasSuffix(setting, "_FILE") && setting != "SSL_CERT_DIR" {
						continue
					}
					named = append(named, setting)
					for one := range strings.SplitSeq(value, ",") {
						if !slices.Contains(mounted, one) {
							t.Errorf("%s: %s: %s is %s, which is none of %q", name, component, setting, one, mounted)
						}
					}
				}
				slices.Sort(named)
				if want := all[component]; name == "all on" && !slices.Equal(named, want) || name != "all on" && len(named)+len(mounted) > 0 {
					t.Errorf("%s: %s mounts %q for %q", name, c.Name, mounted, named)
				}
			}
		}
	}
}

// mountedFiles are the directories that a container mounts, and the files in them that the pod names.
func mountedFiles(t *testing.T, volumes []core.Volume, c core.Container) (paths []string) {
	t.Helper()
	if len(volumes) != len(c.VolumeMounts) {
		t.Errorf("%s mounts %d volumes of %d", c.Name, len(c.VolumeMounts), len(volumes))
	}
	for _, mount := range c.VolumeMounts {
		i := slices.IndexFunc(volumes, func(v core.Volume) bool { return v.Name == mount.Name })
		if i < 0 || !mount.ReadOnly {
			t.Errorf("%s mounts %s, which is no volume, or may write to it", c.Name, mount.Name)
			continue
		}
		paths = append(paths, mount.MountPath)
		if secret := volumes[i].Secret; secret != nil {
			for _, item := range secret.Items {
				paths = append(paths, path.Join(mount.MountPath, item.Path))
			}
		}
		if files := volumes[i].ConfigMap; files != nil {
			for _, item := range files.Items {
				paths = append(paths, path.Join(mount.MountPath, item.Path))
			}
		}
	}
	return paths
}
