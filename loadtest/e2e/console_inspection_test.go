package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// axeSource is the accessibility checker, empty where npm cannot install it.
func axeSource(t *testing.T) string {
	t.Helper()
	modules, err := nodeModules()
	if err == nil {
		var source []byte
		if source, err = os.ReadFile(filepath.Join(modules, "axe-core", "axe.min.js")); err == nil {
			return string(source)
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal(err)
	}
	t.Logf("accessibility is not checked: %v", err)
	return ""
}

// What axe looks for: all it knows, and what another scheme of colours could change.
const (
	everyRule   = ""
	colourRules = `runOnly: ["color-contrast", "link-in-text-block"]`
)

// inspect looks at a page of the console as inspectPage does, and in a small window with the console's bar.
func (b *tab) inspect(name string) {
	b.t.Helper()
	b.inspectPage(name, phoneWidth)
	if nested := evaluate[int](b, "document.querySelectorAll('a button, button a').length"); nested > 0 {
		b.t.Errorf("%s has %d buttons in links or links in buttons", name, nested)
	}
	b.do(chromedp.EmulateViewport(smallDesktopWidth, desktopHeight))
	b.fitsSmallDesktop(name)
	b.do(chromedp.EmulateViewport(desktopWidth, desktopHeight))
}

// inspectPage looks at a page in dark and light, large and on a phone of this width: nobody is shut out, nothing sticks out.
func (b *tab) inspectPage(name string, phone int) {
	b.t.Helper()
	b.accessible(name, "dark", colourRules)
	b.accessible(name, "light", everyRule)
	b.do(chromedp.EmulateViewport(int64(phone), phoneHeight, chromedp.EmulateMobile))
	if widths := evaluate[[]int](b, "[document.documentElement.scrollWidth, innerWidth]"); widths[0] > widths[1] || widths[1] != phone {
		b.t.Errorf("%s: the page is %d wide in a window of %d", name, widths[0], widths[1])
	}
	b.do(chromedp.EmulateViewport(desktopWidth, desktopHeight))
}

// accessible expects axe to find nothing with these of its rules in this scheme of colours.
func (b *tab) accessible(name, scheme, rules string) {
	b.t.Helper()
	feature := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, feature); err != nil {
		b.t.Fatal(err)
	}
	if matches := evaluate[bool](b, fmt.Sprintf("matchMedia('(prefers-color-scheme: %s)').matches", scheme)); !matches {
		b.t.Fatalf("the browser does not prefer %s", scheme)
	}
	if b.axe == "" {
		return
	}
	if !evaluate[bool](b, "typeof axe === 'object'") {
		b.do(chromedp.Evaluate[chromedp.Void](b.axe))
	}
	for _, violation := range evaluate[[]string](b, `axe.run(document, {resultTypes: ["violations"], `+rules+`}).then(found => found.violations.map(v =>
		v.id + ": " + v.help + ": " + v.nodes.map(n => n.target.join(" ") + " " + n.failureSummary).join("; ")))`) {
		b.t.Errorf("%s in %s: %s", name, scheme, violation)
	}
}

// fitsSmallDesktop expects the bar in one line beside a scroll bar and an account of the longest name, and no word broken except in
// texts that others chose.
func (b *tab) fitsSmallDesktop(name string) {
	b.t.Helper()
	if width := evaluate[int](b, "document.documentElement.scrollWidth"); width > smallDesktopWidth {
		b.t.Errorf("%s: the page is %d wide in a window of %d", name, width, smallDesktopWidth)
	}
	lines := evaluate[int](b, `(() => {
		const acting = document.querySelector(".acting a")?.lastChild, own = acting?.textContent;
		document.body.style.width = (innerWidth - 17) + "px";
		if (own === "Own account" && acting.parentElement.scrollWidth > acting.parentElement.clientWidth) return -1;
		if (acting) acting.textContent = "Long name ".repeat(13).slice(0, 128);
		const boxes = [...document.querySelectorAll(".bar .wide > *, .bar li")].map((e) => e.getBoundingClientRect());
		const lowest = Math.min(...boxes.map((b) => b.bottom)), inside = boxes.every((b) => b.right <= innerWidth - 17);
		if (acting) acting.textContent = own;
		document.body.style.width = "";
		return inside ? 1 + boxes.filter((b) => b.top >= lowest).length : 0;
	})()`)
	if lines != 1 {
		b.t.Errorf("%s: the bar does not fit one line in a window of %d: %d", name, smallDesktopWidth, lines)
	}
	broken := evaluate[[]string](b, `[...document.querySelectorAll(".cards td:not(.wraps)")].flatMap((cell) => {
		const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT), found = [];
		while (walker.nextNode()) {
			const node = walker.currentNode;
			if (node.parentElement.closest("code, .agent, .unseen")) continue;
			for (const word of node.data.matchAll(/[^\s-]+/g)) {
				const range = new Range();
				range.setStart(node, word.index);
				range.setEnd(node, word.index + word[0].length);
				if (new Set([...range.getClientRects()].map((r) => r.top)).size > 1) found.push(word[0]);
			}
		}
		return found;
	})`)
	if len(broken) > 0 {
		b.t.Errorf("%s: words are broken in two in a window of %d: %q", name, smallDesktopWidth, broken)
	}
}
