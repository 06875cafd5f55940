package manifests_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	core "k8s.io/api/core/v1"
)

// Pods mount files of settings, certificate authorities and extra volumes. The job mounts the volumes of cores, except the settings.
func TestVolumes(t *testing.T) {
	t.Parallel()
	mode := int32(0o444)
	settings := func(component string) core.Volume {
		return core.Volume{Name: "settings", VolumeSource: core.VolumeSource{Secret: &core.SecretVolumeSource{
			SecretName: "intents-settings", DefaultMode: &mode, Items: []core.KeyToPath{{Key: component + ".env", Path: component + ".env"}},
		}}}
	}
	secret := func(name string) core.Volume {
		return core.Volume{Name: name, VolumeSource: core.VolumeSource{Secret: &core.SecretVolumeSource{
			SecretName: "intents", DefaultMode: &mode, Items: []core.KeyToPath{{Key: name + ".json", Path: name + ".json"}},
		}}}
	}
	authorities := core.Volume{Name: "authorities", VolumeSource: core.VolumeSource{Projected: &core.ProjectedVolumeSource{
		DefaultMode: &mode, Sources: []core.VolumeProjection{
			{ConfigMap: &core.ConfigMapProjection{LocalObjectReference: core.LocalObjectReference{Name: "authorities"}}},
			{Secret: &core.SecretProjection{LocalObjectReference: core.LocalObjectReference{Name: "authority"}}},
		},
	}}}
	extra := func(name string) core.Volume {
		return core.Volume{Name: name, VolumeSource: core.VolumeSource{Secret: &core.SecretVolumeSource{SecretName: name}}}
	}
	mount := func(name, path string) core.VolumeMount {
		return core.VolumeMount{Name: name, MountPath: path, ReadOnly: true}
	}
	volumes := map[string][]core.Volume{
		"core":    {settings("core"), secret("rpc"), secret("quotes"), authorities, extra("client")},
		"gateway": {settings("gateway"), authorities, extra("redis-client")},
		"migrate": {authorities, extra("client")},
	}
	mounts := map[string][]core.VolumeMount{
		"core": {
			mount("settings", "/etc/intents"), mount("rpc", "/etc/intents-rpc"), mount("quotes", "/etc/intents-quotes"),
			mount("authorities", "/etc/ssl/authorities"), mount("client", "/etc/client"),
		},
		"gateway": {mount("settings", "/etc/intents"), mount("authorities", "/etc/ssl/authorities"), mount("redis-client", "/etc/redis-client")},
		"migrate": {mount("authorities", "/etc/ssl/authorities"), mount("client", "/etc/client")},
	}
	variables := map[string]string{"core": "CORE_ENV_FILE", "gateway": "GATEWAY_ENV_FILE"}
	for name, values := range releases {
		for component, pod := range templates(objects(t, values)) {
			for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
				given := settingsOf(t, c)
				file, folder := given[variables[component]], given["SSL_CERT_DIR"]
				if name != "all on" {
					if len(pod.Spec.Volumes)+len(c.VolumeMounts) > 0 || file+folder != "" {
						t.Errorf("%s: %s mounts %v, %v for %q, %q", name, component, pod.Spec.Volumes, c.VolumeMounts, file, folder)
					}
					continue
				}
				if diff := cmp.Diff(volumes[component], pod.Spec.Volumes); diff != "" {
					t.Errorf("%s: %s", component, diff)
				}
				if diff := cmp.Diff(mounts[component], c.VolumeMounts); diff != "" {
					t.Errorf("%s: %s: %s", component, c.Name, diff)
				}
				if want := map[string]string{"core": "/etc/intents-rpc/rpc.json"}[component]; given["CORE_RPC_FILE"] != want {
					t.Errorf("%s: %s looks for RPC URLs in %q", component, c.Name, given["CORE_RPC_FILE"])
				}
				if want := map[string]string{"core": "/etc/intents-quotes/quotes.json"}[component]; given["CORE_QUOTES_FILE"] != want {
					t.Errorf("%s: %s looks for providers of quotes in %q", component, c.Name, given["CORE_QUOTES_FILE"])
				}
				if want := map[bool]string{true: "/etc/intents/" + component + ".env"}[component != "migrate"]; file != want || folder != "/etc/ssl/authorities" {
					t.Errorf("%s: %s looks for its settings in %q and for authorities in %q", component, c.Name, file, folder)
				}
			}
		}
	}
}
