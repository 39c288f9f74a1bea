package cassette

import (
	"regexp"
	"strings"
)

// rule replaces what changes from run to run by a fixed word, in recorded and in
// live requests alike, before they are compared.
type rule struct {
	pattern *regexp.Regexp
	with    string // as in regexp.ReplaceAllString
}

// normaliser applies rules in order.
type normaliser []rule

// newNormaliser replaces thread ids, node hashes and commit ids, UUIDs, the random
// words of fences around text that is not trusted, temporary folders, loopback ports,
// dates and clock times, durations (go test's "(cached)" among them), memory addresses,
// goroutine numbers, what codex and qwen write about a command that they ran, and white space at the ends of lines.
func newNormaliser() normaliser {
	replace := func(pattern, with string) rule { return rule{regexp.MustCompile(pattern), with} }
	return normaliser{
		replace(`\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b`, "<thread>"),
		replace(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`, "<uuid>"),
		replace(`\b[0-9a-f]{40}\b`, "<commit>"),
		replace(`\b[0-9A-F][0-9A-HJKMNP-TV-Z]{12}\b`, "<hash>"),
		replace(`\b[0-9a-f]{18}\b`, "<fence>"),
		replace(`(?:/private)?/(?:tmp|var/tmp|var/folders)/[^\s"'`+"`"+`<>()\[\]{}:;,]*`, "<tmp>"),
		// A step's own HOME is below TMPDIR, wherever that is; Claude Code tells its model of it.
		replace(`/[^\s"'`+"`"+`<>()\[\]{}:;,]*/uwf-agent-\d+\b[^\s"'`+"`"+`<>()\[\]{}:;,]*`, "<tmp>"),
		replace(`\b(127\.0\.0\.1|localhost|\[::1\]):\d{2,5}\b`, "$1:<port>"),
		replace(`\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?(?:Z|[+-]\d{2}:?\d{2}))?)?`, "<date>"),
		replace(`\b\d{2}:\d{2}:\d{2}(?:\.\d+)?\b`, "<clock>"),
		replace(`\b(?:\d+(?:\.\d+)?(?:ns|µs|us|ms|h|m|s))+\b|\(cached\)`, "<time>"),
		replace(`\b0x[0-9a-f]{6,16}\b`, "<address>"),
		replace(`\bgoroutine \d+\b`, "goroutine <n>"),
		// Without \b before them: in a text that is JSON they follow the n of \n.
		replace(`Chunk ID: [0-9a-f]{6}\b`, "Chunk ID: <id>"),
		replace(`Wall time: [0-9.]+ seconds\b`, "Wall time: <time>"),
		replace(`Process Group PGID: \d+\b`, "Process Group PGID: <n>"),
		replace(`(?m)[ \t\r]+$`, ""),
	}
}

// normaliseText applies the rules, and takes away empty lines at the end.
func (n normaliser) normaliseText(s string) string {
	for _, r := range n {
		s = r.pattern.ReplaceAllString(s, r.with)
	}
	return strings.TrimRight(s, "\n")
}
