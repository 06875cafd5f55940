package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"time"

	"intents.internal/core/identity"
	"intents.internal/core/identity/account"
	"intents.internal/pkg/network"
)

//go:embed templates
var templateFiles embed.FS

// pages are the templates, by file name without .html. Each is the layout with its own main part.
type pages map[string]*template.Template

// shared are the files with the templates that every page may use.
var shared = []string{"templates/layout.html", "templates/parts.html", "templates/chart.html"}

func newPages(a assets) (pages, error) {
	base, err := template.New("layout.html").Funcs(template.FuncMap{
		"asset":   func(name string) string { return a[name].url },
		"browser": account.BrowserName,
		"ago":     ago,
		"clock":   func(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04") },
		"exact":   func(t time.Time) string { return t.UTC().Format("2 Jan 2006, 15:04:05") },
		"stamp":   func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
		"short":   short,
		"abi":     newABIView,
		"hex":     func(bytes any) string { return fmt.Sprintf("0x%x", bytes) },
	}).ParseFS(templateFiles, shared...)
	if err != nil {
		return nil, fmt.Errorf("read the console's templates: %w", err)
	}
	files, err := fs.Glob(templateFiles, "templates/*.html")
	if err != nil {
		return nil, err
	}
	all := pages{}
	for _, file := range files {
		own, err := template.Must(base.Clone()).ParseFS(templateFiles, file)
		if err != nil {
			return nil, fmt.Errorf("read the console's templates: %w", err)
		}
		all[strings.TrimSuffix(strings.TrimPrefix(file, "templates/"), ".html")] = own
	}
	return all, nil
}

// view is the data of the layout.
type view struct {
	Title string
	// Section is the part of the console the page belongs to, for the navigation.
	Section string
	// Owner is the signed-in account, nil for none.
	Owner *account.Account
	// Acting is the person and the account that the session acts on, nil for none.
	Acting *identity.Principal
	// Of is the environment of the object that the page shows, empty for none.
	Of network.Environment
	// Shown is the environment that lists and the overview show, and Switch chooses another; empty on public pages.
	Shown  network.Environment
	Switch *environmentSwitch
	// needs is what the person would be asked for to confirm an effect, see identity.Sessions.ConfirmationOf.
	needs error
	// confirmAt is the page that confirms and leads back to this one.
	confirmAt string
	// Notice is the result of the last request.
	Notice string
	// Form is the page's form, never nil.
	Form *form
	// Sought is what the search box holds.
	Sought string
	// Body is the page's own data.
	Body any
}

// ForOthers reports whether the session acts on another account than the person's own.
func (v view) ForOthers() bool { return v.Acting != nil && v.Acting.Account.ID != v.Acting.Person.ID }

// Elsewhere reports whether the page shows an object of the environment that lists do not show.
func (v view) Elsewhere() bool { return v.Of != "" && v.Shown != "" && v.Of != v.Shown }

// On returns the URL of a form with the account that the session acts on, so that a form left open in one tab cannot change an
// account that was chosen in another tab.
func (v view) On(path string) string { return path + "?account=" + v.Acting.Account.ID.String() }

// Develops reports whether the page may offer actions of developers.
func (v view) Develops() bool { return v.Acting != nil && v.Acting.May(identity.Develop) }

// Manages reports whether the page may offer actions of owners.
func (v view) Manages() bool { return v.Acting != nil && v.Acting.May(identity.Manage) }

// render writes a complete page or nothing, so that an error page can follow an error.
func (c *console) render(w http.ResponseWriter, r *http.Request, user currentUser, name string, v view) error {
	if v.Form == nil {
		v.Form = &form{}
	}
	v.Owner, v.Acting, v.Notice = user.owner, user.principal, notices[r.URL.Query().Get("done")]
	if len(v.Form.Errors) > 0 {
		v.Notice = ""
	}
	if user.environment != "" {
		v.Shown, v.Switch = user.environment, newEnvironmentSwitch(r, user.environment)
	}
	if user.principal != nil {
		v.needs, v.confirmAt = c.Identity.Sessions.ConfirmationOf(user.principal), confirmFor(r)
	}
	var out bytes.Buffer
	if err := c.pages[name].ExecuteTemplate(&out, "layout", v); err != nil {
		return fmt.Errorf("write the page %s: %w", name, err)
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Length", strconv.Itoa(out.Len()))
	v.Form.announce(w)
	w.WriteHeader(v.Form.status())
	_, _ = w.Write(out.Bytes()) // fails only if the client has disconnected
	return nil
}

// notices are the texts for results, by the query parameter done.
var notices = map[string]string{
	"signed-up":         "Welcome. Your account is ready. Make your first key now.",
	"signed-out":        "You are signed out.",
	"ended":             "Your session has ended. Sign in to go on; what you sent last was not saved.",
	"renamed":           "The key is renamed.",
	"enabled":           "The key is enabled.",
	"disabled":          "The key is disabled. Requests with it are refused from now on.",
	"expiry":            "The expiry is changed.",
	"restricted":        "The scopes and networks are changed. They apply from now on.",
	"origins":           "The origins are changed. They apply from now on.",
	"deleted":           "The key is deleted. Requests with it are refused from now on.",
	"revoked":           "The session is ended.",
	"revoked-all":       "All other sessions are ended.",
	"reported":          "The transaction is reported. This page shows its progress.",
	"simulated":         "The status is simulated. Nothing has happened on chain, and nothing will.",
	"recorded":          "The intent is recorded. Nothing is sent yet: the account that sends signs the transaction below.",
	"recorded-to-sign":  "The intent is recorded. Nothing moves yet: the account that sends signs below, then anybody can send the transaction.",
	"signed":            "The signature is valid and stored. Anybody with gas can send the transaction now; until then nothing moves.",
	"quote-used":        "The quote was already used for this intent. Nothing more was recorded.",
	"webhook-changed":   "The webhook is changed.",
	"webhook-enabled":   "The webhook is enabled. Events of the meantime are being sent.",
	"webhook-disabled":  "The webhook is disabled. Nothing is sent to it from now on.",
	"webhook-tested":    "A test event is being sent.",
	"webhook-replayed":  "The events are being sent again.",
	"webhook-retried":   "The event is being sent again.",
	"webhook-deleted":   "The webhook is deleted. Nothing more is sent to it.",
	"password-changed":  "The password is changed, and all other sessions are ended.",
	"password-reset":    "The password is changed. Sign in with it, and look through your keys: they work as before.",
	"linked":            "It is linked: you can sign in with it from now on.",
	"unlinked":          "It is unlinked, and all other sessions are ended.",
	"passkey-added":     "The passkey is added, and confirms from now on. If it is the first one, all other sessions are ended.",
	"passkey-renamed":   "The passkey is renamed.",
	"passkey-removed":   "The passkey is removed.",
	"account-ended":     "Your account is deleted, and its keys are refused from now on.",
	"account-fresh":     "You have a new account with this address and password: sign in. The earlier account with this address never verified it. It keeps its keys and has no access to your account.",
	"email-verified":    "Your address is verified.",
	"email-changed":     "Your address is changed. Sign in with the new one from now on.",
	"email-confirmed":   "The change is confirmed here. Now open the link that we have sent to the new address.",
	"verification-sent": "A mail with a link is on its way to your address. The link works once, for an hour.",
	"email-requested":   "A mail with a link is on its way. The link works once, for an hour.",
	"acting":            "You have switched to this account.",
	"shared":            "The account is made, and you have switched to it. Invite its members below.",
	"invited":           "The invitation is on its way by mail. It can be accepted for 48 hours.",
	"invite-canceled":   "The invitation is canceled. Its link no longer works.",
	"member-changed":    "The role is changed.",
	"member-removed":    "The member is removed, and signed out of this account. The keys stay as they are.",
	"left":              "You have left the account.",
	"joined":            "You are now a member of this account, and have switched to it.",
	"declined":          "The invitation is declined.",
	"shared-renamed":    "The shared account is renamed.",
	"shared-ended":      "The shared account is deleted, and its keys are refused from now on.",
}

// ago returns the time from t to now in words, rounded down.
func ago(t, now time.Time) string {
	d := now.Sub(t)
	count := func(n int, unit string) string {
		if n == 1 {
			return "1 " + unit + " ago"
		}
		return strconv.Itoa(n) + " " + unit + "s ago"
	}
	switch {
	case d < time.Minute:
		return "less than a minute ago"
	case d < time.Hour:
		return count(int(d/time.Minute), "minute")
	case d < 48*time.Hour:
		return count(int(d/time.Hour), "hour")
	default:
		return count(int(d/(24*time.Hour)), "day")
	}
}

// abiView is ABI-encoded data, which is folded unless it is short.
type abiView struct {
	// ID is the element's.
	ID, Text string
	Bytes    int
	Short    bool
}

func newABIView(id string, data []byte) abiView {
	const short = 36 // a selector and a word
	return abiView{ID: id, Text: fmt.Sprintf("0x%x", data), Bytes: len(data), Short: len(data) <= short}
}

// short abbreviates a long id to both ends.
func short(s string) string {
	if len(s) <= 14 {
		return s
	}
	return s[:8] + "…" + s[len(s)-4:]
}
