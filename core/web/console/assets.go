package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
)

//go:embed assets
var assetFiles embed.FS

const assetsPath = "/console/assets/"

// assets are the files that pages load, by file name. Their URLs contain a hash of the content, so browsers may cache them
// without limit.
type assets map[string]asset

type asset struct {
	url       string
	mediaType string
	body      []byte
}

// assetTypes are the media types of the files, each script after those that it imports.
var assetTypes = []struct{ name, mediaType string }{
	{"console.css", "text/css; charset=utf-8"},
	{"icon.svg", "image/svg+xml"},
	{"memory.js", javascript},
	{"transaction.js", javascript},
	{"wallets.js", javascript},
	{"page.js", javascript},
	{"checks.js", javascript},
	{"sign-in.js", javascript},
	{"passkeys.js", javascript},
	{"amounts.js", javascript},
	{"send.js", javascript},
	{"sign.js", javascript},
	{"countdown.js", javascript},
	{"console.js", javascript},
}

const javascript = "text/javascript; charset=utf-8"

func newAssets() assets {
	all := assets{}
	for _, file := range assetTypes {
		body, err := assetFiles.ReadFile("assets/" + file.name)
		if err != nil {
			panic(fmt.Sprintf("console: %v", err)) // the file is embedded
		}
		if file.mediaType == javascript {
			body = all.resolveImports(body)
		}
		sum := sha256.Sum256(body)
		kind := path.Ext(file.name)
		url := assetsPath + strings.TrimSuffix(file.name, kind) + "." + hex.EncodeToString(sum[:8]) + kind
		all[file.name] = asset{url: url, mediaType: file.mediaType, body: body}
	}
	return all
}

// resolveImports replaces the imports of a script with the URLs of the files, so that browsers may cache those too.
func (a assets) resolveImports(script []byte) []byte {
	for name, file := range a {
		script = bytes.ReplaceAll(script, []byte(`"./`+name+`"`), []byte(`"`+file.url+`"`))
	}
	return script
}

// serve writes the file. During a rolling update a page may request another core's version: the response is this core's version,
// and the browser must not cache it.
func (a assets) serve(w http.ResponseWriter, r *http.Request) {
	protect(w.Header())
	given := r.PathValue("name")
	stem, _, _ := strings.Cut(given, ".")
	found, ok := a[stem+path.Ext(given)]
	if !ok {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintln(w, "There is no such file.")
		return
	}
	if r.URL.Path == found.url {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	w.Header().Set("Content-Type", found.mediaType)
	w.Header().Set("Content-Length", strconv.Itoa(len(found.body)))
	_, _ = w.Write(found.body) // fails only if the client has disconnected
}
