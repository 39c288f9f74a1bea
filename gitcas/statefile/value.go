package statefile

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/internal/strictyaml"
)

// Kinds of failure. Every error of this package matches one of them with
// errors.Is.
var (
	// ErrMalformed: the bytes are not what the file has to hold.
	ErrMalformed = errors.New("malformed")
	// ErrFormat: VERSION names a format that this program doesn't know.
	ErrFormat = errors.New("unknown format")
	// ErrUnreleased: it names the format of before the first release. It matches
	// ErrFormat.
	ErrUnreleased = fmt.Errorf("%w", ErrFormat)
	// ErrUnstorable: a value that the file can't hold.
	ErrUnstorable = errors.New("not storable")
)

func newMalformedError(line int, format string, args ...any) error {
	return fmt.Errorf("%w: line %d: %s", ErrMalformed, line, fmt.Sprintf(format, args...))
}

// value is a piece of YAML, reduced to what our files use. Both readers below
// make it, so that one interpreter reads what we wrote and what people wrote.
type value struct {
	line  int
	kind  kind
	text  string // of a scalar, else empty
	str   bool   // a scalar that is certainly text: it was quoted
	pairs []pair
	items []value
}

type kind uint8

const (
	scalar kind = iota
	mapping
	sequence
)

type pair struct {
	key string
	val value
}

// isNull reports whether the value is YAML's null.
func (v value) isNull() bool {
	if v.kind != scalar || v.str {
		return false
	}
	switch v.text {
	case "", "~", "null", "Null", "NULL":
		return true
	}
	return false
}

// chunk is one top-level key with its value, and the lines that it stands on.
type chunk struct {
	key  string
	text string // whole lines, as they stand in the file
	val  value
}

// parseChunks splits a YAML file with one block mapping at its top into its
// entries. Comments stay with the entry before them; those above the first entry
// are returned as head. The file may be "{}" (nothing), but not empty: a file
// that lost its content must not be taken for one without entries.
func parseChunks(data []byte, maxBytes int) (head string, chunks []chunk, err error) {
	switch {
	case len(data) > maxBytes:
		return "", nil, fmt.Errorf("%w: %d bytes, more than %d", ErrMalformed, len(data), maxBytes)
	case !utf8.Valid(data):
		return "", nil, fmt.Errorf("%w: not UTF-8", ErrMalformed)
	}
	text := string(data)
	if strings.TrimSpace(stripComments(text)) == "" {
		return "", nil, fmt.Errorf("%w: the file is empty; one without entries holds {}", ErrMalformed)
	}
	if strings.TrimSpace(stripComments(text)) == "{}" {
		return strings.TrimSuffix(text, lastLine(text)), nil, nil
	}
	starts, lines := topLevelLines(text)
	if len(starts) == 0 {
		return "", nil, newMalformedError(1, "no entry")
	}
	head = text[:starts[0]]
	chunks = make([]chunk, 0, len(starts))
	seen := make(map[string]bool, len(starts))
	for i, start := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		c, err := parseChunk(text[start:end], lines[i])
		if err != nil {
			return "", nil, err
		}
		if seen[c.key] {
			return "", nil, newMalformedError(lines[i], "%q is there twice", c.key)
		}
		seen[c.key] = true
		chunks = append(chunks, c)
	}
	return head, chunks, nil
}

// topLevelLines finds the lines that begin an entry: their offsets and numbers.
func topLevelLines(text string) (starts, lines []int) {
	pos := 0
	for n := 1; pos < len(text); n++ {
		end := strings.IndexByte(text[pos:], '\n')
		line := text[pos:]
		if end >= 0 {
			line = text[pos : pos+end]
		}
		marker := n == 1 && strings.TrimRight(line, " \r") == "---"
		if line != "" && line != "\r" && !strings.ContainsRune(" #", rune(line[0])) && !marker {
			starts, lines = append(starts, pos), append(lines, n)
		}
		if end < 0 {
			break
		}
		pos += end + 1
	}
	return starts, lines
}

func stripComments(text string) string {
	var b strings.Builder
	// Only the beginning matters: a file with content is told by its first line.
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") || b.Len() == 0 && strings.TrimSpace(line) == "---" {
			continue
		}
		b.WriteString(line)
		if b.Len() > 64 {
			break
		}
	}
	return b.String()
}

func lastLine(text string) string {
	trimmed := strings.TrimRight(text, "\n\r ")
	return text[strings.LastIndexByte(trimmed, '\n')+1:]
}

// parseChunk reads one entry: with our own reader when it is written as we write,
// which costs a hundredth of a YAML parser, else with yaml.v3.
func parseChunk(text string, line int) (chunk, error) {
	v, ok := parsePlain(text, line)
	if !ok {
		var err error
		if v, err = parseYAML(text, line); err != nil {
			return chunk{}, err
		}
	}
	if len(v.pairs) != 1 {
		return chunk{}, newMalformedError(line, "not one key with its value")
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return chunk{key: v.pairs[0].key, text: text, val: v.pairs[0].val}, nil
}

// parseYAML reads what people wrote. It has no anchors, aliases, merge keys and unknown
// tags: nothing that uwf or a person has a reason to write.
func parseYAML(text string, line int) (value, error) {
	r := &strictyaml.Reader{Above: line - 1}
	n := r.ReadYAML("", text)
	if len(r.Faults) > 0 {
		return value{}, newMalformedError(r.Faults[0].At.Line, "%s", r.Faults[0].Error())
	}
	return convertNode(n, line-1), nil
}

func convertNode(n *strictyaml.Node, above int) value {
	v := value{line: above + n.Pos.Line, text: n.Text, str: n.Quoted || strings.ContainsAny(n.Text, "\n\r")}
	switch n.Kind {
	case strictyaml.Map:
		v.kind = mapping
		for _, e := range n.Entries {
			v.pairs = append(v.pairs, pair{e.Key, convertNode(e.Val, above)})
		}
	case strictyaml.List:
		v.kind = sequence
		for _, item := range n.Items {
			v.items = append(v.items, convertNode(item, above))
		}
	}
	return v
}
