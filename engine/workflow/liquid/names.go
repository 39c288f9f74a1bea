package liquid

import (
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

var (
	identifier = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_-]*\??`)
	whole      = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_-]*\??$`)
)

func isName(s string) bool { return whole.MatchString(s) && !slices.Contains(reservedWords(), s) }

// reservedWords are the names that are no variables.
func reservedWords() []string {
	return []string{"and", "or", "contains", "in", "true", "false", "nil", "null", "undefined"}
}

// scanner goes through an expression and collects the names that it reads.
type scanner struct {
	text   string
	base   int // where text begins in the template
	at     int
	reads  []Read
	ranges bool // ranges may stand here
	bad    *SyntaxError
}

// readNames lists what an expression reads. It takes what the library's parser takes,
// and more: that one checks the rest. What a loop goes through may be a range.
func readNames(text string, at int, ranges bool) ([]Read, *SyntaxError) {
	s := &scanner{text: text, base: at, ranges: ranges}
	s.scanAll()
	return s.reads, s.bad
}

func (s *scanner) failAt(length int, fix, format string, args ...any) {
	if s.bad == nil {
		s.bad = &SyntaxError{Offset: s.base + s.at, Length: length, Message: fmt.Sprintf(format, args...), Fix: fix}
	}
}

func (s *scanner) scanAll() {
	filter := false // a filter's name comes next
	for s.at < len(s.text) && s.bad == nil {
		rest := s.text[s.at:]
		switch c := rest[0]; {
		case c == '"' || c == '\'':
			end := strings.IndexByte(rest[1:], c)
			if end < 0 {
				s.failAt(len(rest), "close it", "a quote is never closed")
				return
			}
			s.at += end + 2
		case strings.HasPrefix(rest, "..") && !s.ranges:
			s.failAt(2, "write {% for i in (1..3) %}", "a range can stand in a loop only")
		case c == '|':
			filter = true
			s.at++
			continue
		case identifier.MatchString(rest):
			s.scanName(identifier.FindString(rest), filter)
		case c >= '0' && c <= '9':
			for s.at < len(s.text) && (s.text[s.at] >= '0' && s.text[s.at] <= '9') {
				s.at++
			}
		case c == ' ' || c == '\t':
			s.at++
			continue
		default:
			s.at++
		}
		filter = false
	}
}

// scanName reads one word: a filter, a keyword, or a variable with what follows it.
func (s *scanner) scanName(word string, filter bool) {
	switch {
	case filter:
		s.scanFilter(word)
		if word == "default" {
			s.reads = markAsked(s.reads)
		}
		s.at += len(word)
		return
	case strings.HasPrefix(s.text[s.at+len(word):], ":"), slices.Contains(reservedWords(), word), word == "reversed":
		s.at += len(word)
		return
	case word == "empty" || word == "blank":
		s.failAt(len(word), "compare its size: {% if list.size == 0 %}", "%s is not supported", word)
		return
	}
	r := Read{Path: []string{word}, Offset: s.base + s.at}
	from := s.at
	s.at += len(word)
	for s.at < len(s.text) && s.bad == nil {
		rest := s.text[s.at:]
		if strings.HasPrefix(rest, ".") && identifier.MatchString(rest[1:]) {
			part := identifier.FindString(rest[1:])
			r.addPart(part)
			s.at += len(part) + 1
			continue
		}
		if rest[0] != '[' {
			break
		}
		s.scanIndex(&r)
	}
	r.Length = s.at - from
	s.reads = append(s.reads, r)
}

func (r *Read) addPart(name string) {
	if !r.Open {
		r.Path = append(r.Path, name)
	}
}

// scanIndex reads [0], ["name"] or [other].
func (s *scanner) scanIndex(r *Read) {
	end := closingBracket(s.text[s.at:])
	if end < 0 {
		s.failAt(1, "close it", "a [ is never closed")
		return
	}
	inner := strings.TrimSpace(s.text[s.at+1 : s.at+end])
	switch {
	case len(inner) > 1 && (inner[0] == '"' || inner[0] == '\'') && inner[len(inner)-1] == inner[0]:
		r.addPart(inner[1 : len(inner)-1])
	case inner != "" && strings.Trim(inner, "-0123456789") == "":
		r.addPart("")
	default:
		reads, bad := readNames(s.text[s.at+1:s.at+end], s.base+s.at+1, false)
		if s.reads = append(s.reads, reads...); bad != nil {
			s.bad = bad
		}
		r.Open = true
	}
	s.at += end + 1
}

// closingBracket is where the bracket that text begins with is closed; -1: nowhere.
func closingBracket(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"', '\'':
			j := strings.IndexByte(text[i+1:], c)
			if j < 0 {
				return -1
			}
			i += j + 1
		case '[':
			depth++
		case ']':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

func (s *scanner) scanFilter(name string) {
	if slices.Contains(filterNames(), name) {
		return
	}
	if why, refused := refusedFilters()[name]; refused {
		s.failAt(len(name), why[1], "the filter %q is not supported: %s", name, why[0])
		return
	}
	s.failAt(len(name), "known are: "+strings.Join(Filters(), ", "), "there is no filter %q", name)
	s.bad.Name, s.bad.Known = name, Filters()
}
