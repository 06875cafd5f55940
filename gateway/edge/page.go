package edge

import (
	"bytes"
	"encoding/json"
	"html/template"

	"github.com/valyala/fasthttp"

	"intents.internal/pkg/wire"
)

// errorPage is the console's HTML error page for the gateway's own errors.
var errorPage = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{.Status}} · Transfer Intent Service</title>
<main>
<h1>That did not work</h1>
<p>{{.Message}}</p>
<p>The operator finds this request by its id, <code>{{.RequestID}}</code>.</p>
<p><a href="/console">Back to the console</a></p>
</main>
</html>
`))

// renderErrorPage replaces the JSON error in a response of the console by an HTML page.
func renderErrorPage(answer *fasthttp.Response, requestID []byte) {
	var e wire.Error
	if json.Unmarshal(answer.Body(), &e) != nil || e.Message == "" {
		return
	}
	var text bytes.Buffer
	status := fasthttp.StatusMessage(answer.StatusCode())
	if errorPage.Execute(&text, struct{ Status, Message, RequestID string }{status, e.Message, string(requestID)}) != nil {
		return // keep the JSON error
	}
	answer.Header.SetContentType("text/html; charset=utf-8")
	answer.Header.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; frame-ancestors 'none'")
	answer.Header.Set("X-Content-Type-Options", "nosniff")
	answer.SetBodyRaw(text.Bytes())
}
