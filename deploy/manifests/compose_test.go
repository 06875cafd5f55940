package manifests_test

import (
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/google/go-cmp/cmp"
)

var secretLine = regexp.MustCompile(`(?m)^([A-Z_]+)=$`)

// secrets are random values of the settings in .env.example.
func secrets(t *testing.T) []string {
	t.Helper()
	var lines []string
	for _, line := range secretLine.FindAllStringSubmatch(read(t, ".env.example"), -1) {
		lines = append(lines, line[1]+"="+strings.Repeat("5ec2e7", 11))
	}
	return lines
}

// load is the project with the services of these profiles, or of all if none is named.
func load(t *testing.T, environment []string, profiles ...string) (*types.Project, error) {
	t.Helper()
	if len(profiles) == 0 {
		profiles = []string{"*"}
	}
	options, err := cli.NewProjectOptions([]string{filepath.Join(root, "docker-compose.yml")},
		cli.WithProfiles(profiles), cli.WithEnv(append([]string{"PWD=/srv/intents"}, environment...)), cli.WithInterpolation(true), cli.WithNormalization(true), cli.WithConsistency(true), cli.WithResolvedPaths(true))
	if err != nil {
		t.Fatal(err)
	}
	return options.LoadProject(t.Context())
}

func project(t *testing.T) *types.Project {
	t.Helper()
	p, err := load(t, secrets(t))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Compose requires the settings without a default, and .env.example lists exactly those.
func TestCompose_RequiredSecrets(t *testing.T) {
	t.Parallel()
	all := secrets(t)
	if len(all) == 0 {
		t.Fatal(".env.example names no secret")
	}
	for i, line := range all {
		name, _, _ := strings.Cut(line, "=")
		if _, err := load(t, slices.Delete(slices.Clone(all), i, i+1)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("docker-compose.yml without %s: %v", name, err)
		}
	}
}

var jobs = []string{"import-chains", "import-tokens", "migrate"}

// A service waits until what it depends on is healthy, or has ended in case of a job, and shares a network with it. Cores wait for
// all jobs.
func TestCompose_StartOrder(t *testing.T) {
	t.Parallel()
	p := project(t)
	awaited := map[string]bool{}
	var await func(name string)
	await = func(name string) {
		for on := range p.Services[name].DependsOn {
			awaited[on] = true
			await(on)
		}
	}
	await("core")
	for name, service := range p.Services {
		job := slices.Contains(jobs, name)
		if job != (service.HealthCheck == nil) || job != (service.Restart == "no") || job && !awaited[name] {
			t.Errorf("%s: what goes on has a health check and is started again, a job has not, and cores wait for it", name)
		}
		for on, dependency := range service.DependsOn {
			isJob := slices.Contains(jobs, on)
			if (dependency.Condition == types.ServiceConditionCompletedSuccessfully) != isJob || (dependency.Condition == types.ServiceConditionHealthy) == isJob {
				t.Errorf("%s waits until %s is %s", name, on, dependency.Condition)
			}
			if !isJob && !shareNetwork(service, p.Services[on]) {
				t.Errorf("%s cannot connect to %s", name, on)
			}
		}
	}
}

func shareNetwork(a, b types.ServiceConfig) bool {
	if a.NetworkMode == types.ServicePrefix+b.Name {
		return true
	}
	for name := range a.Networks {
		if _, shared := b.Networks[name]; shared {
			return true
		}
	}
	return false
}

// Every service has only the rights that it needs, limits, a memory limit above the soft bound of Go's collector, and an image of a version.
// Images that are built here are never pulled from a registry, where another image may have their name.
func TestCompose_Hardened(t *testing.T) {
	t.Parallel()
	for name, service := range project(t).Services {
		if !service.ReadOnly || !slices.Equal(service.CapDrop, []string{"ALL"}) || len(service.CapAdd) > 0 || service.Privileged ||
			!slices.Contains(service.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s has more rights than it needs", name)
		}
		if service.Deploy == nil || service.Deploy.Resources.Limits == nil || service.Deploy.Resources.Limits.MemoryBytes == 0 || service.Deploy.Resources.Limits.Pids == 0 {
			t.Fatalf("%s has no limits", name)
		}
		if bound, ok := flat(service.Environment)["GOMEMLIMIT"]; ok {
			checkMemory(t, name, bound, int64(service.Deploy.Resources.Limits.MemoryBytes))
		}
		if _, tag, _ := strings.Cut(service.Image, ":"); tag == "" || tag == "latest" {
			t.Errorf("%s: the image %s names no version", name, service.Image)
		}
		own := service.Build != nil
		if own != strings.HasPrefix(service.Image, "transfer-intents/") || own != (service.PullPolicy == types.PullPolicyNever) {
			t.Errorf("%s: image %s, built here: %t, pull policy %q", name, service.Image, own, service.PullPolicy)
		}
		for _, volume := range service.Volumes {
			if volume.Type != types.VolumeTypeBind {
				continue
			}
			if _, err := os.Stat(volume.Source); err != nil || !volume.ReadOnly {
				t.Errorf("%s mounts %s: %v, read-only %t", name, volume.Source, err, volume.ReadOnly)
			}
		}
	}
}

// Only the services for users and clients publish ports, at the addresses where those are, and only services that use Postgres or Redis
// reach it.
func TestCompose_Networks(t *testing.T) {
	t.Parallel()
	p := project(t)
	ports, users := map[string]string{}, map[string][]string{}
	for name, service := range p.Services {
		for _, port := range service.Ports {
			ports[name] = port.HostIP + ":" + port.Published
		}
		for _, database := range []string{"postgres", "redis"} {
			if name != database && shareNetwork(service, p.Services[database]) {
				users[database] = append(users[database], name)
			}
		}
	}
	for _, names := range users {
		slices.Sort(names)
	}
	if diff := cmp.Diff(map[string][]string{"postgres": append([]string{"archive", "core"}, jobs...), "redis": {"core", "gateway"}}, users); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"haproxy": "127.0.0.1:8080", "prometheus": "127.0.0.1:9090", "grafana": "127.0.0.1:3000", "alertmanager": "127.0.0.1:9093"}, ports); diff != "" {
		t.Error(diff)
	}
	// Prometheus discovers every core and gateway by these names.
	scraped := read(t, "deploy/prometheus/prometheus.yml")
	for _, name := range []string{"core", "gateway"} {
		if !strings.Contains(scraped, "names: ["+name+"]") || !shareNetwork(p.Services["prometheus"], p.Services[name]) {
			t.Errorf("%s is not scraped", name)
		}
	}
	var open []string
	for name, network := range p.Networks {
		if !network.Internal {
			open = append(open, name)
		}
	}
	slices.Sort(open)
	if diff := cmp.Diff([]string{"operators", "outside", "public"}, open); diff != "" {
		t.Error(diff)
	}
}

// The archive and Alertmanager start where .env asks for them only. The archive is lost with the database, unless ARCHIVE names another
// place for it.
func TestCompose_Profiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ profile, service string }{{"archive", "archive"}, {"alertmanager", "alertmanager"}} {
		for profile, want := range map[string]bool{c.profile: true, "none": false} {
			p, err := load(t, append(secrets(t), "ARCHIVE=/mnt/backup"), profile)
			if err != nil {
				t.Fatal(err)
			}
			service, got := p.Services[c.service]
			if got != want {
				t.Errorf("with the profile %s, %s runs: %t", profile, c.service, got)
			}
			if got && c.service == "archive" && service.Volumes[0].Source != "/mnt/backup" {
				t.Errorf("the archive is at %v", service.Volumes)
			}
		}
	}
}

// A scalable service has no container name and publishes no port. Its number of replicas is in .env, so that it is the same after
// every up, and one DNS name resolves to all of its containers.
func TestCompose_Replicas(t *testing.T) {
	t.Parallel()
	p := project(t)
	scaled, err := load(t, append(secrets(t), "GATEWAYS=5", "CORES=3"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"gateway": 5, "core": 3} {
		service, more := p.Services[name], scaled.Services[name]
		if service.ContainerName != "" || len(service.Ports) > 0 || service.GetScale() != 2 || more.GetScale() != want {
			t.Errorf("%s: name %q, ports %v, %d and %d replicas", name, service.ContainerName, service.Ports, service.GetScale(), more.GetScale())
		}
	}
	gateway := p.Services["gateway"]
	if known := *gateway.Environment["GATEWAY_CORE_URL"]; known != "http://core:8081" {
		t.Errorf("gateways look for cores at %s", known)
	}
	subnet := p.Networks["front"].Ipam.Config[0].Subnet
	if trusted := *gateway.Environment["GATEWAY_TRUSTED_PROXIES"]; trusted != subnet {
		t.Errorf("gateways trust %s, and haproxy is in %s", trusted, subnet)
	}
	for _, taken := range []string{"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"} {
		if netip.MustParsePrefix(taken).Overlaps(netip.MustParsePrefix(subnet)) {
			t.Errorf("%s is of %s, where hosts of others are", subnet, taken)
		}
	}
	if files := gateway.Ulimits["nofile"]; files == nil || files.Single*3/4 < 65536 {
		t.Error("gateways may open too few files for GATEWAY_MAX_CONNS")
	}
	connections := regexp.MustCompile(`(?m)^ +maxconn (\d+)$`).FindStringSubmatch(read(t, "deploy/haproxy/haproxy.cfg"))
	if most, err := strconv.Atoi(connections[1]); err != nil || p.Services["haproxy"].Ulimits["nofile"].Single < 2*most+100 {
		t.Errorf("haproxy may open too few files for %s connections: %v", connections[1], err)
	}
	if !strings.Contains(read(t, "deploy/haproxy/haproxy.cfg"), " gateway:8080\n") {
		t.Error("haproxy knows the gateways by another name or port")
	}
}

// The services accept their settings, their health check commands exist, and their stop grace periods are long enough.
func TestCompose_Settings(t *testing.T) {
	t.Parallel()
	p := project(t)
	for _, program := range []string{"gateway", "core"} {
		service := p.Services[program]
		if service.Build.Target != program || service.Build.Dockerfile != "deploy/Dockerfile" {
			t.Errorf("%s is built from %s of %s", program, service.Build.Target, service.Build.Dockerfile)
		}
		settings := imageSettings(t, program)
		maps.Copy(settings, flat(service.Environment))
		accepts(t, program, settings)
		if diff := cmp.Diff(types.HealthCheckTest{"CMD", "/" + program, "healthcheck"}, service.HealthCheck.Test); diff != "" {
			t.Errorf("%s: %s", program, diff)
		}
		if grace, need := time.Duration(*service.StopGracePeriod), patience(t, settings, slowest[program]...); grace < need+2*time.Second {
			t.Errorf("%s is killed after %s, and may take %s", program, grace, need)
		}
	}
	for _, name := range jobs {
		job := p.Services[name]
		runs(t, job.Command, flat(job.Environment))
	}
}

// Cores get the optional settings, the files of secrets and the lists that .env names. An .env that names none starts as well, without them.
func TestCompose_Optional(t *testing.T) {
	t.Parallel()
	const lists = "/etc/intents/screening/ofac-ETH.txt,/etc/intents/screening/own.txt"
	environment := append(secrets(t),
		"RPC_FILE=/etc/intents-rpc.json", "QUOTES_FILE=/etc/intents-quotes.json", "SCREENING_DIR=/srv/lists", "SCREENING_FILES="+lists)
	want := map[string]string{"CORE_RPC_FILE": "/run/secrets/rpc.json", "CORE_QUOTES_FILE": "/run/secrets/quotes.json", "CORE_SCREENING_FILE": lists}
	for name, value := range map[string]string{
		"WEBHOOK_SECRET_KEY": strings.Repeat("5e", 32), "WEBHOOK_SECRET_KEY_PREVIOUS": strings.Repeat("c2", 32), "WEBHOOK_ALLOW": "10.20.0.0/16,fd00::/8",
		"QUOTES_ALLOW": "10.30.0.0/16,fd00:30::/64", "SMTP_URL": "smtp://a:b@mail.example.com", "SMTP_FROM": "no-reply@example.com",
		"SCREENING_CONTACT": "appeals@example.com",
	} {
		environment, want["CORE_"+name] = append(environment, name+"="+value), value
	}
	given, err := load(t, environment)
	if err != nil {
		t.Fatal(err)
	}
	bare := project(t)
	settings, unset := imageSettings(t, "core"), flat(bare.Services["core"].Environment)
	maps.Copy(settings, flat(given.Services["core"].Environment))
	for name, value := range want {
		if none, ok := unset[name]; settings[name] != value || none != "" || !ok {
			t.Errorf("%s is %q, want %q, and %q without a line in .env", name, settings[name], value, none)
		}
	}
	if diff := cmp.Diff([]string{
		"/etc/intents-rpc.json at rpc.json", "/etc/intents-quotes.json at quotes.json", "bind /srv/lists at /etc/intents/screening, read-only: true",
	}, mounts(given, "core")); diff != "" {
		t.Errorf("cores mount (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		"/dev/null at rpc.json", "/dev/null at quotes.json", "volume screening at /etc/intents/screening, read-only: true",
	}, mounts(bare, "core")); diff != "" {
		t.Errorf("without a line in .env, cores mount (-want +got):\n%s", diff)
	}
	accepts(t, "core", settings)
}

// mounts are the secrets and volumes of a service, each with its place in the containers.
func mounts(p *types.Project, service string) (all []string) {
	for _, secret := range p.Services[service].Secrets {
		all = append(all, p.Secrets[secret.Source].File+" at "+secret.Target)
	}
	for _, volume := range p.Services[service].Volumes {
		all = append(all, fmt.Sprintf("%s %s at %s, read-only: %t", volume.Type, volume.Source, volume.Target, volume.ReadOnly))
	}
	return all
}

// What the loop in the documentation writes is all that Compose needs, and a key of webhooks.
func TestCompose_DocumentedSecrets(t *testing.T) {
	t.Parallel()
	for _, file := range []string{".env.example", "deploy/compose.md"} {
		loop, _, _ := strings.Cut(read(t, file), "openssl rand")
		for _, line := range append(secrets(t), "WEBHOOK_SECRET_KEY=") {
			if name, _, _ := strings.Cut(line, "="); !strings.Contains(loop, " "+name) {
				t.Errorf("the loop of %s makes no %s", file, name)
			}
		}
	}
}

func flat(environment types.MappingWithEquals) map[string]string {
	settings := map[string]string{}
	for name, value := range environment {
		if value != nil {
			settings[name] = *value
		}
	}
	return settings
}
