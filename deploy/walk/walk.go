// Package walk reads the walk through the service from its pages: the first intent of README.md and the walk of deploy/local/README.md.
// The pages are the one home of its texts and requests.
package walk

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Step is a block of commands of a shell with the paragraph before it.
type Step struct {
	Text string
	// Commands begin at the start of a line each.
	Commands []string
}

// Request is a request of a command.
type Request struct{ Path, IdempotencyKey, Body string }

// pages are the pages with their sections.
var pages = []struct{ page, title string }{{"README.md", "One intent"}, {"deploy/local/README.md", "The walk"}}

// block is a block of commands behind a paragraph, if there is one.
var block = regexp.MustCompile("(?s)^(.*?)```sh\n(.*?)```")

// Read reads the steps from the pages of a checkout.
func Read(root string) (steps []Step, err error) {
	for _, of := range pages {
		text, err := os.ReadFile(filepath.Join(root, of.page))
		if err != nil {
			return nil, err
		}
		_, section, found := strings.Cut(string(text), "\n## "+of.title+"\n")
		if !found {
			return nil, fmt.Errorf("%s has no section %q", of.page, of.title)
		}
		section, _, _ = strings.Cut(section, "\n## ")
		for found := block.FindStringSubmatch(section); found != nil; found = block.FindStringSubmatch(section) {
			section = section[len(found[0]):]
			paragraphs := strings.Split(strings.TrimSpace(found[1]), "\n\n")
			step := Step{Text: plain(paragraphs[len(paragraphs)-1])}
			for line := range strings.Lines(found[2]) {
				if n := len(step.Commands); n > 0 && strings.HasPrefix(line, " ") {
					step.Commands[n-1] += line
				} else {
					step.Commands = append(step.Commands, line)
				}
			}
			steps = append(steps, step)
		}
	}
	return steps, nil
}

// link is a link of Markdown.
var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// plain is a paragraph in one line, without links.
func plain(paragraph string) string {
	return strings.Join(strings.Fields(link.ReplaceAllString(paragraph, "$1")), " ")
}

var (
	createCommand = regexp.MustCompile(`(?s)^create '(\{.*\})'`)
	curlCommand   = regexp.MustCompile(`(?s)^curl -s \$GATEWAY_URL(/v2/\S+) .*?-d '(\{.*\})'`)
	keyHeader     = regexp.MustCompile(`-H 'idempotency-key: ([^']*)'`)
	// deadlineCommand is a deadline that the shell computes.
	deadlineCommand = regexp.MustCompile(`'\$\(date -u -d '(\d+ )seconds' \+%FT%TZ\)'`)
)

// ErrNoRequest is of a command that makes no request with a body.
var ErrNoRequest = errors.New("the command makes no request with a body")

// RequestOf reads the request of a command, with the deadline that the shell would compute now.
func RequestOf(command string, now time.Time) (Request, error) {
	if computed := deadlineCommand.FindStringSubmatch(command); computed != nil {
		ahead, err := time.ParseDuration(strings.TrimSpace(computed[1]) + "s")
		if err != nil {
			return Request{}, err
		}
		command = strings.Replace(command, computed[0], now.Add(ahead).UTC().Format(time.RFC3339), 1)
	}
	if found := createCommand.FindStringSubmatch(command); found != nil {
		return Request{Path: "/v2/transfers", Body: found[1]}, nil
	}
	found := curlCommand.FindStringSubmatch(command)
	if found == nil {
		return Request{}, fmt.Errorf("%w: %.80s", ErrNoRequest, command)
	}
	request := Request{Path: found[1], Body: found[2]}
	if key := keyHeader.FindStringSubmatch(command); key != nil {
		request.IdempotencyKey = key[1]
	}
	return request, nil
}
