package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// curlName is the name under which the test's own program is curl: see TestMain.
const curlName = "curl"

// withCurl returns env with a curl in PATH. Where none is installed, it is this program, because the tests need Go and nothing else.
func withCurl(t *testing.T, env []string) []string {
	t.Helper()
	if _, err := exec.LookPath(curlName); err == nil {
		return env
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, curlName)); err != nil {
		t.Fatal(err)
	}
	t.Log("curl is not installed: its commands are run by the test's own program")
	return append(env, "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// curl does what curl does with these arguments: a URL, -s, -H and -d. It fails on any other.
func curl(args []string) error {
	var url, data string
	method, header := http.MethodGet, http.Header{}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		switch {
		case arg == "-s":
		case !strings.HasPrefix(arg, "-") && url == "":
			url = arg
		case arg == "-H" && len(args) > 0:
			name, value, _ := strings.Cut(args[0], ":")
			header.Add(name, strings.TrimSpace(value))
			args = args[1:]
		case arg == "-d" && len(args) > 0:
			method, data = http.MethodPost, args[0]
			args = args[1:]
		default:
			return fmt.Errorf("%q is not understood here: install curl", arg)
		}
	}
	request, err := http.NewRequest(method, url, strings.NewReader(data)) //nolint:noctx // whoever runs the program ends it
	if err != nil {
		return err
	}
	request.Header = header
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	_, err = io.Copy(os.Stdout, response.Body)
	return err
}
