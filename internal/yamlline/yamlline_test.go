package yamlline

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// find parses a text as its readers do, and says where it is broken; 0: it is not.
func find(text string) (int, string) {
	for dec := yaml.NewDecoder(bytes.NewReader([]byte(text))); ; {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return 0, ""
		}
		if err != nil {
			return Find(text, err)
		}
	}
}

const definition = `name: two
description: A developer
roles:
  dev:
    description: |
      Several lines
      of text
    goal: "a long
      quoted text"
    capabilities: [read,
      write]
    procedure: >
      folded

      text
    output: o
    frontmatter: {type: object, properties: {
        $status: {enum: [done, ask]},
        note: {type: string}}, required: [$status, note]}
  rev:
    description: d
    goal: g
graph:
  $START: {_: {role: dev, prompt: begin}}
  dev:
    done: {role: rev, prompt: "look"}
`

// Each mistake on each line of a definition, with both kinds of line breaks and with a mark
// of the byte order, is found on its line, or where the text or bracket began that it leaves
// open. What can be seen only later (a key without its colon, the first of two keys that are
// indented differently) is not in here.
func TestFind(t *testing.T) {
	// The lines that are within something that began before: where that line is wrong, so is
	// its beginning.
	began := map[int]int{9: 8, 11: 10, 18: 17, 19: 17}
	for name, broken := range map[string]string{
		"tab": "\tx: y", "double quote": `x: "open`, "single quote": "x: 'open", "bracket": "x: [a, b", "brace": "x: {a: b", "two colons": "x: a: b", "at": "x: @a",
		"backtick": "x: `a`", "percent": "%x: a", "alias and text": "x: *a: b: c", "escape": `x: "a\q"`, "fence": "```", "comma": "x: [a b: c d: e]", "comma in a map": "x: {a: b c: d}",
		"after a quote": `x: "a" b`, "block": "x: |x", "tag": "x: !<a b", "control": "x: a\x01b", "two brackets": "x: [a]]",
	} {
		for n, line := range strings.Split(strings.TrimSuffix(definition, "\n"), "\n") {
			if line == "" {
				continue
			}
			lines := strings.Split(definition, "\n")
			indent := line[:len(line)-len(strings.TrimLeft(line, " "))]
			if name == "tab" || name == "fence" {
				indent = ""
			}
			lines[n] = indent + broken
			for _, ends := range []string{"\n", "\r\n", "\r"} {
				for _, mark := range []string{"", "\ufeff"} {
					text := mark + strings.Join(lines, ends)
					got, message := find(text)
					if got == 0 { // within a text, it is none
						continue
					}
					if want := n + 1; got != want && got != began[want] {
						t.Errorf("%s on line %d: %d, %s", name, want, got, message)
					}
					if strings.HasPrefix(message, "line ") || strings.Contains(message, "yaml:") {
						t.Errorf("the message is %q", message)
					}
				}
			}
		}
	}
}

func TestFindElse(t *testing.T) {
	for text, want := range map[string]int{
		"a: b\n---\n[1":                                3,
		"a: b\n--- x\n  y: z: 1\n":                     3,
		"{\n  \"a\": 1\n  \"b\": 2\n}\n":               2, // its comma
		"{\n  \"a\": 1,\n  // c\n  \"b\": 2\n}\n":      3,
		"a:\n  b: c\n d: e\n":                          3,
		"a:\n  - b\n - c\n":                            3,
		"a: |\n  x\n y: z\n":                           3,
		"a: [b,\n  c\nd: e\nf: g\n":                    1,
		"a: \"b\n\nc: d\ne: \"f\"\n":                   1,
		"a: \"b\n  c\\q\"\n":                           2,
		"a: \"b\n  c\" d\n":                            2,
		"# c\n\n\na: b\n  c: d\n":                      5,
		"a: b\n\n\n\n":                                 0,
		"a: b\nc: *b\nd: e\nf: g\n":                    2,
		"x: y\n" + strings.Repeat("#", maxText) + "\n": 0,
	} {
		if got, message := find(text); got != want {
			t.Errorf("%.40q: line %d, want %d: %s", text, got, want, message)
		}
	}
	// A long text is not parsed again.
	long := "# " + strings.Repeat("x", maxText) + "\na: b\n c: d: e\n"
	if got, message := find(long); got != 3 || message != "mapping values are not allowed in this context" {
		t.Errorf("a long text: %d %s", got, message)
	}
	if line, message := Find("a: b", errors.New("yaml: line 7: something else")); line != 7 || message != "something else" {
		t.Errorf("what can't be seen again: %d %s", line, message)
	}
}

// Whatever a text is, the line is one of it.
func FuzzFind(f *testing.F) {
	f.Add(definition)
	f.Add("a: [b\r\rc: \"\n---\n{\u2028\x00")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 4<<10 {
			t.Skip()
		}
		defer func() { _ = recover() }() // the library's own
		line, message := find(text)
		if lines := strings.Count(normalizeText(text), "\n") + 1; line < 0 || line > lines || strings.Contains(message, "yaml: ") {
			t.Errorf("line %d of %d: %s", line, lines, message)
		}
	})
}

func ExampleFind() {
	const text = "name: two\nroles:\n  dev:\n    goal: g\n   output: o\n"
	var doc yaml.Node
	err := yaml.Unmarshal([]byte(text), &doc)
	line, message := Find(text, err)
	fmt.Println(err)
	fmt.Printf("line %d: %s\n", line, message)
	// Output:
	// yaml: line 2: did not find expected key
	// line 5: did not find expected key
}
