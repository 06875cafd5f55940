package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"intents.internal/loadtest/system"
	"intents.internal/pkg/testkit/asynctest"
)

// The sizes at which pages are looked at. The small desktop is the narrowest on which the navigation has one line.
const (
	desktopWidth, desktopHeight = 1100, 900
	smallDesktopWidth           = 1024
	phoneWidth, phoneHeight     = 360, 740
)

// browsers are programs that chromium starts, best first: the headless shell renders the same pages at half the processor time.
// Debian's is named by its path, because the program of that name on PATH is a script that does not pass a signal on.
var browsers = []string{"/usr/lib/chromium/chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome"}

// chromium starts a browser for the test.
func chromium(t *testing.T) context.Context {
	t.Helper()
	program := system.FindProgram(t, "on Debian: apt-get install chromium-headless-shell", browsers...)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program),
		chromedp.Flag("host-resolver-rules", "MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost")) // no page shall reach another machine
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses its sandbox to root
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v", program, err)
	}
	return ctx
}

// tab is a window of a browser that knows nothing of the others. It takes down what a page should not do: an error or a
// warning in its console, and a request to another host.
type tab struct {
	t    *testing.T
	ctx  context.Context //nolint:containedctx // it is what chromedp knows a tab by
	base string
	axe  string
	// allowed is the origin of another site that the tab may visit, empty for none.
	allowed string

	mu     sync.Mutex
	faults []string
}

func openTab(browser context.Context, t *testing.T) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, 5*time.Minute)
	t.Cleanup(cancel)
	b := &tab{t: t, ctx: ctx, base: shared.Stack.Env().GatewayURL, axe: axeSource(t)}
	if err := chromedp.Listen(ctx, b.note); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.EmulateViewport(desktopWidth, desktopHeight))
	t.Cleanup(func() {
		for _, fault := range b.taken() {
			t.Error(fault)
		}
	})
	return b
}

func (b *tab) note(event any) {
	fault := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		fault = "exception: " + e.ExceptionDetails.Text
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			fault = fmt.Sprintf("console.%s: %v", e.Type, e.Args)
		}
	case *log.EventEntryAdded:
		// That a page was answered with an error status is for the tests to say; what another site loads does not matter.
		ofPage := e.Entry.Source == "network" && !strings.Contains(e.Entry.URL, "/console/assets/")
		if (e.Entry.Level == "error" || e.Entry.Level == "warning") && !ofPage {
			fault = fmt.Sprintf("%s %s: %s (%s)", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		ours := strings.HasPrefix(e.Request.URL, b.base+"/") || b.allowed != "" && strings.HasPrefix(e.DocumentURL, b.allowed+"/")
		if !ours && !strings.HasPrefix(e.Request.URL, "data:") {
			fault = "request to " + e.Request.URL
		}
	}
	if fault != "" {
		b.mu.Lock()
		b.faults = append(b.faults, fault)
		b.mu.Unlock()
	}
}

// taken are the faults since the last call.
func (b *tab) taken() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := b.faults
	b.faults = nil
	return taken
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.t.Fatalf("%v, at %s:\n%s", err, b.path(), b.text())
	}
}

// open goes to a path and expects a page that says these.
func (b *tab) open(path string, says ...string) {
	b.t.Helper()
	b.openRefused(path, http.StatusOK, says...)
}

// openRefused is open for pages with another status than 200.
func (b *tab) openRefused(path string, status int64, says ...string) {
	b.t.Helper()
	b.arrive(status, chromedp.Navigate(b.base+path))
	b.says(says...)
}

// click presses what leads to another page, and expects that it says these.
func (b *tab) click(selector string, says ...string) {
	b.t.Helper()
	b.clickRefused(selector, http.StatusOK, says...)
}

// clickRefused is click for pages with another status than 200.
func (b *tab) clickRefused(selector string, status int64, says ...string) {
	b.t.Helper()
	b.arrive(status, chromedp.Click(chromedp.CSS(selector)))
	b.says(says...)
}

func (b *tab) arrive(status int64, step chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	response, err := chromedp.RunResponse(b.ctx, step)
	if err != nil {
		b.t.Fatalf("%v, at %s:\n%s", err, b.path(), b.text())
	}
	if response.Status != status {
		b.t.Fatalf("%s: %d, want %d\n%s", response.URL, response.Status, status, b.text())
	}
}

// fill types into fields what they shall hold: selectors and texts in turn.
func (b *tab) fill(pairs ...string) {
	b.t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		b.do(chromedp.Clear(chromedp.CSS(pairs[i])), chromedp.SendKeys(chromedp.CSS(pairs[i]), pairs[i+1]))
	}
}

// evaluate runs a script of the test's in the page.
func evaluate[T any](b *tab, script string) T {
	b.t.Helper()
	value, err := read[T](b, script)
	if err != nil {
		b.t.Fatal(err)
	}
	return value
}

// read is evaluate for what is awaited: an error says that the page is not there yet.
func read[T any](b *tab, script string) (T, error) {
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	if err != nil {
		return value, fmt.Errorf("%s: %w", script, err)
	}
	return value, nil
}

func (b *tab) path() string {
	location, err := chromedp.Run(b.ctx, chromedp.Location())
	if err != nil {
		return err.Error()
	}
	u, err := url.Parse(location)
	if err != nil {
		return location
	}
	return u.RequestURI()
}

// text is what the page shows, with single spaces.
func (b *tab) text() string {
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
	if err != nil {
		return err.Error()
	}
	return strings.Join(strings.Fields(text), " ")
}

// says expects the page to show all of these.
func (b *tab) says(texts ...string) {
	b.t.Helper()
	if len(texts) == 0 {
		return
	}
	shown := b.text()
	for _, text := range texts {
		if !strings.Contains(shown, text) {
			b.t.Errorf("%s does not say %q:\n%s", b.path(), text, shown)
		}
	}
}

// of is the text of an element.
func (b *tab) of(selector string) string {
	b.t.Helper()
	return evaluate[string](b, textOf(selector))
}

// tells awaits an element that says this, on the page or on one that follows.
func (b *tab) tells(selector, says string) {
	b.t.Helper()
	asynctest.Succeeds(b.t, func() error {
		text, err := read[string](b, textOf(selector))
		if err == nil && !strings.Contains(text, says) {
			err = fmt.Errorf("%s says %q, want %q in it", selector, text, says)
		}
		return err
	})
}

func textOf(selector string) string {
	return fmt.Sprintf("document.querySelector(%q).textContent", selector)
}

// hasFocus waits until an element of the class has the focus: a browser gives it after the page has loaded.
func (b *tab) hasFocus(class string) {
	b.t.Helper()
	asynctest.Succeeds(b.t, func() error {
		got, err := read[string](b, "document.activeElement.className")
		if err == nil && got != class {
			err = fmt.Errorf("the focus is on %q, not %q", got, class)
		}
		return err
	})
}

// signUp makes an account in the browser.
func (b *tab) signUp(email string) {
	b.t.Helper()
	b.open("/console/sign-up")
	b.fill("#name", "Ann Example")
	b.signIn(email, password, "Look at your mail")
	b.open(mailedLink(b.t, email).RequestURI())
	b.fill("#password", password)
	b.click("main form button", "Your address is verified.")
	b.open("/console")
}

// signIn fills in the page's form for an address and a password.
func (b *tab) signIn(email, password string, says ...string) {
	b.t.Helper()
	b.fill("#email", email, "#password", password)
	b.click("main form button", says...)
}

// testEnvironment is the switch to the test environment, which an account with a live key does not begin with.
const testEnvironment = `form[action="/console/environment"] button[value="test"]`

// makeKey makes a key in the browser and returns its text.
func (b *tab) makeKey(name string) string {
	b.t.Helper()
	b.open("/console/keys")
	b.fill("#name", name)
	b.click("main form button", "Your new key", name, "shown this once")
	return b.of("#key")
}
