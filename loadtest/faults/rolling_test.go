package faults_test

import (
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"intents.internal/deploy/stack"
	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/testkit/embedded"
)

// All gateways and then all cores are restarted, one after the other, under load, behind HAProxy as it is shipped, until many requests
// were made: none fails, not even a write that must not be repeated. Clients repeat nothing.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	d := startDeployment(t, shared.Binaries, shared.database)
	balancer := startHAProxy(t, d.fleet)
	w := newWorkload(t, shared.database, []*gateway{{system.Process{URL: balancer.url}}}, reads, writes, keyedWrites, batches)
	d.inUse = func() bool { return balancer.inUse(t) == len(d.fleet) }
	w.start(2 * members)
	began := time.Now()
	for least := times(1000, 10_000); len(w.soFar()) < least || time.Since(began) < 2*time.Second; {
		d.restartGateways(t)
		d.restartCores(t)
	}
	w.mustSucceed(began).mustBeSound(t)
}

// upgradeFrom is the release that TestUpgrade starts from. Upgrades from it lose nothing.
const upgradeFrom = "0.1.0"

// A release is upgraded to this version as deploy/README.md says, first the database, then cores, then gateways, and goes back in reverse.
// On the way the shared secret is replaced as deploy/security.md says. The two versions work together in between, and no request fails.
//
// The release is built from its tag. While there is no tag, no version follows the release, and this version takes its place: then the
// test shows that the steps lose no request, and nothing about two versions.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	old := releaseBinaries(t, upgradeFrom)
	const fresh = "the secret that takes the place of the shared one"
	db := startDatabaseOf(t, old, embedded.PostgresConfig{})
	d := startDeployment(t, old, db)
	w := newWorkload(t, db, d.fleet, reads, writes, keyedWrites, batches)
	w.followReadiness()
	d.inUse = func() bool { return w.ready[0].Load() && w.ready[1].Load() }
	w.start(members)
	began := time.Now()

	if err := embedded.Run(t.Context(), db.command(shared.Binaries, "migrate")); err != nil {
		t.Fatal(err)
	}
	d.become(shared.Binaries)
	d.setSecrets(fresh, secret, secret)
	d.restartCores(t)
	d.setSecrets(fresh, secret, fresh)
	d.restartGateways(t)
	d.become(old)
	d.setSecrets(fresh, "", fresh)
	d.restartGateways(t)
	d.restartCores(t)

	w.mustSucceed(began).mustBeSound(t)
	for _, core := range d.cores {
		if before, now := core.statusFor(t, secret), core.statusFor(t, fresh); before != http.StatusUnauthorized || now != http.StatusNoContent {
			t.Errorf("core answers %d to the old secret and %d to the new one", before, now)
		}
		if log := core.Log.String(); strings.Contains(log, secret) || strings.Contains(log, fresh) {
			t.Error("the log contains a secret")
		}
	}
}

// releaseBinaries builds the programs of a release from its tag v<release>, and returns their directory: that of this version's programs
// if the tag does not exist.
func releaseBinaries(t *testing.T, release string) string {
	t.Helper()
	root, err := stack.FindRoot()
	if err != nil {
		t.Fatal(err)
	}
	// A checkout of another user is read all the same.
	git := func(args ...string) *exec.Cmd {
		return exec.CommandContext(t.Context(), "git", append([]string{"-C", root, "-c", "safe.directory=*"}, args...)...)
	}
	if err := git("rev-parse", "--verify", "--quiet", "refs/tags/v"+release).Run(); err != nil {
		t.Logf("there is no tag v%s: this version takes the place of the release", release)
		return shared.Binaries
	}
	source, binaries := t.TempDir(), t.TempDir()
	archive := filepath.Join(source, "source.tar")
	if out, err := git("archive", "--output="+archive, "refs/tags/v"+release).CombinedOutput(); err != nil {
		t.Fatalf("git archive: %v: %s", err, out)
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

// deployment is two gateways and two cores that are restarted one after the other.
type deployment struct {
	fleet []*gateway
	cores []*coreServer
	// inUse reports whether all gateways are sent requests.
	inUse func() bool
}

func startDeployment(t *testing.T, binaries string, db *database) *deployment {
	t.Helper()
	cores := startCoresOf(t, binaries, db, 2)
	return &deployment{cores: cores, fleet: startGateways(t, 2, fleetConfig{
		// Longer than HAProxy takes to notice.
		redis: startRedis(t).url(), core: urlsOf(cores), binaries: binaries, env: patient("GATEWAY_DRAIN_DELAY=1500ms"),
	})}
}

// become has the programs of this directory started from now on.
func (d *deployment) become(binaries string) {
	for _, g := range d.fleet {
		g.Command.Path = filepath.Join(binaries, "gateway")
	}
	for _, c := range d.cores {
		c.Command.Path = filepath.Join(binaries, "core")
	}
}

// setSecrets sets the shared secrets of what is started from now on: cores accept the first two, gateways send the third.
func (d *deployment) setSecrets(current, previous, gateways string) {
	for _, c := range d.cores {
		c.Command.Env = append(c.Command.Env, "CORE_GATEWAY_SECRET="+current, "CORE_GATEWAY_SECRET_PREVIOUS="+previous)
	}
	for _, g := range d.fleet {
		g.Command.Env = append(g.Command.Env, "GATEWAY_CORE_SECRET="+gateways)
	}
}

func (d *deployment) restartGateways(t *testing.T) {
	t.Helper()
	for _, g := range d.fleet {
		d.restart(t, &g.Process)
	}
}

func (d *deployment) restartCores(t *testing.T) {
	t.Helper()
	for _, c := range d.cores {
		d.restart(t, &c.Process)
	}
}

// restart returns when the server is in use again.
func (d *deployment) restart(t *testing.T, s *system.Process) {
	t.Helper()
	s.Stop(t)
	s.Start(t)
	s.AwaitReady(t)
	asynctest.Eventually(t, "all are in use again", func() bool { return d.inUse() && coresUp(t, d.fleet) == len(d.cores) })
}

// statusFor is core's response to a gateway with this secret that asks whether it is ready.
func (c *coreServer) statusFor(t *testing.T, secret string) int {
	t.Helper()
	return system.NewClient(t, c.URL, "").Do(http.MethodGet, "/internal/ready", nil, "X-Gateway-Secret", secret).Status
}
