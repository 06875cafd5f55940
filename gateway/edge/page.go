package edge

import (
	"bytes"
	"encoding/json"
	"html/template"

	"github.com/valyala/fasthttp"

	"intents.internal/pkg/wire"
)

// page is what a person reads where core, which makes the pages, was not asked or did not answer.
var page = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{.Status}} · Transfer Intent Service</title>
<main>
<h1>That did not work</h1>
<p>{{.Message}}</p>
<p><a href="/console">Back to the console</a></p>
</main>
</html>
`))

// showPage turns the error in an answer of the console into a page.
func showPage(answer *fasthttp.Response) {
	var told wire.Error
	if json.Unmarshal(answer.Body(), &told) != nil || told.Message == "" {
		return
	}
	var text bytes.Buffer
	status := fasthttp.StatusMessage(answer.StatusCode())
	if page.Execute(&text, struct{ Status, Message string }{status, told.Message}) != nil {
		return // the JSON says it as well
	}
	answer.Header.SetContentType("text/html; charset=utf-8")
	answer.Header.Set("Content-Security-Policy", "default-src 'none'; base-uri 'none'; frame-ancestors 'none'")
	answer.Header.Set("X-Content-Type-Options", "nosniff")
	answer.SetBodyRaw(text.Bytes())
}
