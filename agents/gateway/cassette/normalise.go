package cassette

import (
	"regexp"
	"strings"
)

// Rule replaces what changes from run to run by a fixed word, in recorded and in
// live requests alike, before they are compared.
type Rule struct {
	Pattern *regexp.Regexp
	With    string // as in regexp.ReplaceAllString
}

// PathRule replaces a folder that has another name in every run, as in
// PathRule(workspace, "<workspace>").
func PathRule(folder, name string) Rule {
	return Rule{Pattern: regexp.MustCompile(regexp.QuoteMeta(strings.TrimRight(folder, "/"))), With: strings.ReplaceAll(name, "$", "$$")}
}

// DefaultRules replace thread ids, node hashes and commit ids, UUIDs, the random
// words of fences around text that is not trusted, temporary folders, loopback ports, dates and clock times, durations (go test's "(cached)"
// among them), memory addresses and goroutine numbers.
func DefaultRules() []Rule {
	rule := func(pattern, with string) Rule { return Rule{Pattern: regexp.MustCompile(pattern), With: with} }
	return []Rule{
		rule(`\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b`, "<thread>"),
		rule(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`, "<uuid>"),
		rule(`\b[0-9a-f]{40}\b`, "<commit>"),
		rule(`\b[0-9A-F][0-9A-HJKMNP-TV-Z]{12}\b`, "<hash>"),
		rule(`\b[0-9a-f]{18}\b`, "<fence>"),
		rule(`(?:/private)?/(?:tmp|var/tmp|var/folders)/[^\s"'`+"`"+`<>()\[\]{}:;,]*`, "<tmp>"),
		rule(`\b(127\.0\.0\.1|localhost|\[::1\]):\d{2,5}\b`, "$1:<port>"),
		rule(`\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?(?:Z|[+-]\d{2}:?\d{2}))?)?`, "<date>"),
		rule(`\b\d{2}:\d{2}:\d{2}(?:\.\d+)?\b`, "<clock>"),
		rule(`\b(?:\d+(?:\.\d+)?(?:ns|µs|us|ms|h|m|s))+\b|\(cached\)`, "<time>"),
		rule(`\b0x[0-9a-f]{6,16}\b`, "<address>"),
		rule(`\bgoroutine \d+\b`, "goroutine <n>"),
	}
}

// normaliser applies rules in order.
type normaliser []Rule

func newNormaliser(own []Rule) normaliser {
	return append(append(normaliser{}, own...), DefaultRules()...)
}

// normaliseText normalises s: line ends, spaces at line ends, and the rules.
func (n normaliser) normaliseText(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	for _, r := range n {
		s = r.Pattern.ReplaceAllString(s, r.With)
	}
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \t")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}
