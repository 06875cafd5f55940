package stack

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// progressEvery is the least time between two lines of progress.
const progressEvery = 5 * time.Second

// packagePath matches the lines of go build -v, each the path of a package that is being compiled.
var packagePath = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~/-]*$`)

// buildProgress counts what go build downloads and compiles, and forwards all other lines, such as errors. It is not safe for
// concurrent use.
type buildProgress struct {
	name       string
	log        func(line string)
	downloaded int
	compiled   int
	next       time.Time
}

func (p *buildProgress) line(line string) {
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		p.downloaded++
	case packagePath.MatchString(line):
		p.compiled++
	default:
		p.log(line)
		return
	}
	now := time.Now()
	if p.next.IsZero() { // a short build prints no progress
		p.next = now.Add(progressEvery)
	}
	if now.Before(p.next) {
		return
	}
	p.next = now.Add(progressEvery)
	text := fmt.Sprintf("%s: %d packages compiled", p.name, p.compiled)
	if p.downloaded > 0 {
		text += fmt.Sprintf(", %d modules downloaded", p.downloaded)
	}
	p.log(text)
}
