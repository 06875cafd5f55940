package e2e_test

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"intents.internal/loadtest/system"
	intents "intents.internal/pkg/client"
	"intents.internal/pkg/testkit/asynctest"
	"intents.internal/pkg/wire"
)

// sampleBlock is code on a page of the docs, with its language.
var sampleBlock = regexp.MustCompile(`(?s)<div class="sample"><pre tabindex="0" data-language="(\w+)"><code>(.*?)</code></pre>`)

// docsPage is a page of the docs as the service serves it.
func docsPage(t *testing.T, name string) []byte {
	t.Helper()
	response, err := http.Get(shared.Stack.Env().GatewayURL + "/docs/" + name) //nolint:noctx // it is the test's own stack
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d, %v", name, response.StatusCode, err)
	}
	return page
}

// The quickstart as the service serves it: in each language the code makes an intent and reports its transaction. The key comes from the
// environment; the id and the hash are filled in.
func TestDocs_Quickstart(t *testing.T) {
	journey(t)
	t.Parallel()
	page := docsPage(t, "quickstart")
	code := map[string][]string{}
	for _, block := range sampleBlock.FindAllSubmatch(page, -1) {
		code[string(block[1])] = append(code[string(block[1])], html.UnescapeString(string(block[2])))
	}
	for language, run := range map[string]func(t *testing.T, code, key string) string{"sh": runShell, "ts": runTypeScript, "go": runGo} {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			if len(code[language]) != 2 {
				t.Fatalf("the page has the samples %q", code[language])
			}
			key := freshKey(t)
			api := apiClient(t, shared.Stack.Env().GatewayURL, key)
			said := run(t, code[language][0], key)
			made := must(api.Transfers.List(t.Context(), intents.TransferQuery{}))(t).Transfers
			if len(made) != 1 || !strings.Contains(said, made[0].ID) || !strings.Contains(said, "created") {
				t.Fatalf("the account has %+v, the sample said %s", made, said)
			}
			hash := "0x" + strings.Repeat("ab", 32)
			said = run(t, filled(code[language][1], "INTENT_ID", made[0].ID, "HASH", hash), key)
			if read := must(api.Transfers.Get(t.Context(), made[0].ID))(t); read.Status != "submitted" || !strings.Contains(said, "submitted") {
				t.Errorf("the intent is %s, the sample said %s", read.Status, said)
			}
		})
	}
}

func runShell(t *testing.T, code, key string) string {
	t.Helper()
	system.FindProgram(t, "on Debian: apt-get install curl", "curl")
	return runSample(t, key, ".", "sh", "-c", code)
}

func runTypeScript(t *testing.T, code, key string) string {
	t.Helper()
	project := newNodeProject(t)
	project.installClient(t)
	if err := os.WriteFile(filepath.Join(project.dir, "receiver.ts"), []byte(code), 0o600); err != nil { // the file that tsconfig.json names
		t.Fatal(err)
	}
	project.run(t, "tsc", "--outDir", "built")
	return runSample(t, key, project.dir, "node", "built/receiver.js")
}

func runGo(t *testing.T, code, key string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(path, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	return runSample(t, key, ".", "go", "run", "-buildvcs=false", path)
}

func runSample(t *testing.T, key, dir, program string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	command.Dir, command.Env = dir, append(os.Environ(), "API_KEY="+key)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
	return string(out)
}

// captionedBlock is code on a page of the docs, with its caption.
var captionedBlock = regexp.MustCompile(`(?s)<p class="caption">(\w+)</p>\n<pre[^>]*><code>(.*?)</code></pre>`)

// The lines that the service shows install the clients: in a project of npm from the service itself, and in a Go module from the checkout.
func TestDocs_InstallClients(t *testing.T) {
	journey(t)
	t.Parallel()
	page := docsPage(t, "clients")
	code := map[string]string{}
	for _, block := range captionedBlock.FindAllSubmatch(page, -1) {
		code[string(block[1])] = html.UnescapeString(string(block[2]))
	}
	root := must(filepath.Abs("../.."))(t)
	for name, test := range map[string]struct{ file, text, command, use string }{
		"npm": {
			"package.json", `{"type": "module"}`, code["npm"] + " --prefer-offline --no-audit --no-fund",
			`node -e "import('@transfer-intents/client').then(c => console.log(typeof c.createClient))"`,
		},
		"go": {
			"go.mod", "module example.com/shop\n\ngo 1.26\n", strings.ReplaceAll(code["go"], "../transfer-intents", root),
			`printf 'package main\n\nimport "intents.internal/pkg/client"\n\nfunc main() { println("function", client.Now) }\n' >main.go && go mod tidy && GOWORK=off go run . 2>&1`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "npm" {
				system.FindProgram(t, "on Debian: apt-get install npm", "npm")
			}
			if code[name] == "" {
				t.Fatalf("the page has %q", code)
			}
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, test.file), []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			if said := runSample(t, "", dir, "sh", "-ec", test.command+"\n"+test.use); !strings.Contains(said, "function") {
				t.Errorf("the client does not work once it is installed: %s", said)
			}
		})
	}
}

// The docs in a browser: every page in dark and light and on a phone, the search, the copy buttons, an address of the time when they were
// one page, and the choice of a language.
func TestDocs_Browser(t *testing.T) {
	journey(t)
	t.Parallel()
	browser := chromium(t)
	t.Run("pages", func(t *testing.T) {
		for _, path := range append([]string{"/docs"}, wire.DocsPages...) {
			if filepath.Ext(path) == "" {
				t.Run(path, func(t *testing.T) {
					b := openTab(browser, t) // each page has a tab's time
					b.open(path)
					b.inspectPage(path, 390)
				})
			}
		}
	})
	t.Run("scripts", func(t *testing.T) { walkDocsScripts(openTab(browser, t)) })
	t.Run("without scripts", func(t *testing.T) {
		b := openTab(browser, t)
		if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
			t.Fatal(err)
		}
		b.open("/docs/quickstart")
		b.do(chromedp.Click(chromedp.CSS(`label[for="sample-1-ts"]`)))
		if shown := evaluate[[]string](b, shownSamples); !slices.Equal(shown, []string{"ts", "sh"}) {
			t.Errorf("the page shows %q", shown)
		}
	})
}

// shownSamples are the languages that the page shows code in.
const shownSamples = `[...document.querySelectorAll(".sample pre")].filter(e => e.offsetParent).map(e => e.dataset.language)`

func walkDocsScripts(b *tab) {
	t := b.t
	b.open("/docs")
	b.fill("#search", "retry-after 429")
	b.click("form[role=search] button", "RATE_LIMITED")
	if b.path() != "/docs/search?q=retry-after+429" {
		t.Errorf("the search leads to %s", b.path())
	}
	evaluate[string](b, `document.querySelector("#search").value = ""`) // Clear leaves what a script has filled in
	b.fill("#search", "what a receiver does")
	const first = "#index li:not([hidden]) a"
	b.tells(first, "What a receiver does")
	b.click(first, "Respond with 2xx within 15 seconds")

	b.open("/docs#schema-TransferStatus")
	asynctest.Succeeds(t, func() error {
		at, err := read[string](b, "location.pathname + location.hash")
		if err == nil && at != "/docs/reference/objects#schema-TransferStatus" {
			err = fmt.Errorf("the old address leads to %s", at)
		}
		return err
	})

	b.open("/docs/quickstart")
	b.do(chromedp.Click(chromedp.CSS(`label[for="sample-1-go"]`)), chromedp.Click(chromedp.CSS(".sample:nth-of-type(3) .copy")))
	asynctest.Succeeds(t, func() error {
		said, err := read[string](b, textOf(".sample:nth-of-type(3) .copy"))
		if err == nil && said == "Copy" {
			err = fmt.Errorf("the copy button says %q", said)
		}
		return err
	})
	b.open("/docs/quickstart")
	if shown := evaluate[[]string](b, shownSamples); !slices.Equal(shown, []string{"go", "go"}) {
		t.Errorf("the page shows %q once Go was chosen", shown)
	}
}
