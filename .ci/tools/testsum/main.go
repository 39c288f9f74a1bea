// Command testsum reads what `go test -json` prints and shows what a person wants to
// know of it: each package with its time, all that failed tests printed, why tests were
// skipped, and how many there were of each kind. It fails where a test failed, and where
// none ran.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

// event is a line of `go test -json`; see `go doc test2json`.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64 // seconds
}

// summary is what is known of a run so far.
type summary struct {
	out     io.Writer
	output  map[string]*strings.Builder // of what has not ended, by package and test
	passed  int
	failed  int
	skipped map[string][]string // the tests, by the reason
}

func main() {
	s := &summary{out: os.Stdout, output: map[string]*strings.Builder{}, skipped: map[string][]string{}}
	if err := s.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "testsum:", err)
		os.Exit(1)
	}
	s.printEnd()
	if s.failed > 0 || s.passed == 0 {
		os.Exit(1)
	}
}

func (s *summary) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintf(s.out, "%s\n", lines.Bytes()) // not of a test: what a build says
			continue
		}
		s.take(e)
	}
	return lines.Err()
}

func (s *summary) take(e event) {
	key := e.Package + e.ImportPath + " " + e.Test
	switch e.Action {
	case "output", "build-output":
		if s.output[key] == nil {
			s.output[key] = &strings.Builder{}
		}
		s.output[key].WriteString(e.Output)
		return
	case "pass":
		if e.Test == "" {
			fmt.Fprintf(s.out, "ok    %6.1f s  %s\n", e.Elapsed, e.Package)
		} else {
			s.passed++
		}
	case "skip":
		if e.Test != "" {
			why := reasonOf(s.text(key))
			s.skipped[why] = append(s.skipped[why], e.Test)
		}
	case "fail", "build-fail":
		s.failed++
		fmt.Fprintf(s.out, "FAIL  %6.1f s  %s\n%s", e.Elapsed, strings.TrimSpace(key), s.text(key))
	default:
		return
	}
	delete(s.output, key)
}

func (s *summary) text(key string) string {
	if b := s.output[key]; b != nil {
		return b.String()
	}
	return ""
}

// reasonOf is what a skipped test said of it: what is neither go test's own nor the
// place in the file.
func reasonOf(output string) string {
	var said []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "=== ") || strings.HasPrefix(line, "--- ") {
			continue
		}
		if at, rest, ok := strings.Cut(line, ": "); ok && strings.Contains(at, ".go:") {
			line = rest
		}
		said = append(said, line)
	}
	if len(said) == 0 {
		return "no reason given"
	}
	return strings.Join(said, " ")
}

func (s *summary) printEnd() {
	skips := 0
	for _, why := range slices.Sorted(maps.Keys(s.skipped)) {
		skips += len(s.skipped[why])
		fmt.Fprintf(s.out, "skip  %s: %s\n", strings.Join(s.skipped[why], ", "), why)
	}
	fmt.Fprintf(s.out, "%d passed, %d failed, %d skipped\n", s.passed, s.failed, skips)
}
