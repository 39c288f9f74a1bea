package event

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

const prefix = "/uwf"

// verb is something that a comment can ask for.
type verb struct {
	name  string
	words bool   // the rest of the line are words, such as a workflow's name, and no text
	flag  string // the one option that it has without a value
	usage string
}

var verbs = []verb{
	{"start", true, "", "`/uwf start [WORKFLOW]`: start a thread here; what stands below the line is added to the task"},
	{"resume", false, "take-branch", "`/uwf resume ANSWER`: answer the question and go on; the answer may also stand below the line; `--take-branch` goes on from the work branch as it is, also where the thread's commits are gone from it"},
	{"status", false, "", "`/uwf status`: say how the thread stands"},
	{"retry", false, "take", "`/uwf retry [--take]`: try the failed step again; with `--take` also where a job holds the thread, which is stopped if it is not dead"},
	{"cancel", false, "", "`/uwf cancel [REASON]`: stop the thread for good"},
	{"fork", true, "", "`/uwf fork [STEP]`: begin another thread from a step of this one"},
	{"help", false, "", "`/uwf help`: this list"},
}

// options are the ones that any line may have; all take a value.
var options = append([]string{"thread", "agent"}, workflow.LimitFlags()...)

// Verbs lists what a comment can ask for, one line each, as Markdown.
func Verbs() string {
	var b strings.Builder
	for _, v := range verbs {
		b.WriteString("- " + v.usage + "\n")
	}
	return b.String()
}

// CommandError is a /uwf line that can't be understood. Its text is an answer for
// the person who wrote it, as Markdown.
type CommandError struct{ Msg string }

func (e *CommandError) Error() string { return e.Msg }

// complainAbout makes the error, with everything that could have been meant.
func complainAbout(format string, args ...any) error {
	return &CommandError{Msg: fmt.Sprintf(format, args...) + " These can be asked for:\n\n" + Verbs()}
}

// ParseCommand finds the first line of a comment that begins with /uwf, outside of
// code blocks, quotes and HTML comments. Without one it returns nil. A line that
// can't be understood is a *CommandError, whose text is an answer to the person.
func ParseCommand(body string) (*Command, error) {
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(body), "\n")
	var s scanner
	for i, line := range lines {
		if rest, ok := s.cutCommand(line); ok {
			return parseLine(rest, strings.Join(lines[i+1:], "\n"))
		}
	}
	return nil, nil
}

// Option is the value of --name=value; ok is false where the line has it not.
func (c *Command) Option(name string) (value string, ok bool) {
	for _, a := range c.Args {
		if v, found := strings.CutPrefix(a, "--"+name+"="); found {
			return v, true
		}
	}
	return "", false
}

// Has reports whether the line has an option that takes no value.
func (c *Command) Has(flag string) bool { return slices.Contains(c.Args, "--"+flag) }

// Words are the line's words that are no options.
func (c *Command) Words() []string {
	return slices.DeleteFunc(slices.Clone(c.Args), isOption)
}

func isOption(word string) bool { return strings.HasPrefix(word, "--") }

// scanner goes through a comment's lines and knows which of them are code or hidden.
type scanner struct {
	fence   string // what the open code block began with; empty: none is open
	comment bool   // inside of <!-- … -->
	after   bool   // the line before belongs to a paragraph
}

// cutCommand is what follows /uwf, on a line that people see as text.
func (s *scanner) cutCommand(line string) (rest string, ok bool) {
	indent := len(line) - len(strings.TrimLeft(line, " "))
	text := trimLine(line)
	// To the forge a row of backticks behind a no-break space is text: it neither opens
	// nor closes a code block.
	row := strings.Trim(line, " \t")
	switch {
	case s.comment:
		if _, rest, closed := strings.Cut(line, "-->"); closed {
			s.comment = opensComment(rest)
		}
		return "", false
	case s.fence != "":
		if strings.HasPrefix(row, s.fence) && strings.Trim(row, s.fence[:1]) == "" {
			s.fence = ""
		}
		return "", false
	}
	if f := fenceOf(row); f != "" {
		s.fence = f
		return "", false
	}
	paragraph := s.after
	s.after = text != ""
	s.comment = opensComment(line)
	if !paragraph && (indent >= 4 || strings.HasPrefix(line, "\t")) {
		s.after = false // code, by its indentation
		return "", false
	}
	return cutPrefix(text)
}

// opensComment reports whether an HTML comment begins on a line and goes on below it.
func opensComment(line string) bool {
	i := strings.LastIndex(line, "<!--")
	return i >= 0 && !strings.Contains(line[i:], "-->")
}

// fenceOf is the row of backticks or tildes that opens a code block.
func fenceOf(text string) string {
	for _, c := range "`~" {
		row := text[:len(text)-len(strings.TrimLeft(text, string(c)))]
		if len(row) >= 3 && (c == '~' || !strings.Contains(text[len(row):], "`")) {
			return row
		}
	}
	return ""
}

// cutPrefix cuts /uwf off, in any case, where the word ends with it.
func cutPrefix(text string) (string, bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return "", false
	}
	rest := text[len(prefix):]
	if rest == "" {
		return "", true
	}
	trimmed := trimLine(rest)
	return trimmed, len(trimmed) < len(rest)
}

// trimLine takes white space off, such as the no-break spaces of word processors, and
// the marks and joiners that have no width.
func trimLine(s string) string {
	return strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) })
}

// parseLine reads a command's line without /uwf, and the text below it.
func parseLine(line, below string) (*Command, error) {
	first, line := nextWord(line)
	if first == "" {
		return nil, complainAbout("`/uwf` alone says nothing.")
	}
	c := &Command{Verb: strings.ToLower(first)}
	i := slices.IndexFunc(verbs, func(v verb) bool { return v.name == c.Verb })
	if i < 0 {
		return nil, complainAbout("`/uwf %s` is not known.%s", PlainWord(c.Verb), suggest(c.Verb, "/uwf ", verbNames()))
	}
	for line != "" {
		word, rest := nextWord(line)
		switch {
		case isOption(word):
			var err error
			if word, rest, err = readOption(word, rest, verbs[i].flag); err != nil {
				return nil, err
			}
		case verbs[i].words:
			var err error
			if word, err = unquoteWord(word); err != nil {
				return nil, err
			}
		default: // what follows the options is the text, as it stands there
			c.Text = line + "\n"
			word, rest = "", ""
		}
		if line = rest; word != "" {
			c.Args = append(c.Args, word)
		}
	}
	c.Text = strings.TrimSpace(c.Text + below)
	return c, nil
}

func verbNames() []string {
	return lists.Map(verbs, func(v verb) string { return v.name })
}

// suggest asks for what was meant, if that can be guessed.
func suggest(word, before string, known []string) string {
	near := workflow.Suggest(word, known)
	if near == "" {
		return ""
	}
	return fmt.Sprintf(" Did you mean `%s%s`?", before, near)
}

// PlainWord is a word that can stand in a code span.
func PlainWord(s string) string {
	return strings.ReplaceAll(clipText(text.Line(s)), "`", "'")
}

// nextWord cuts the first word off.
func nextWord(s string) (word, rest string) {
	s = trimLine(s)
	if word = quotedWord.FindString(s); word != "" {
		return trimLine(word), trimLine(s[len(word):])
	}
	i := strings.IndexFunc(s, unicode.IsSpace)
	if i < 0 {
		return s, ""
	}
	return s[:i], trimLine(s[i:])
}

// Words may stand between quotes, also of the kinds that phones write.
var (
	quoted     = lazyregexp.New(`^["'“„](.*)["'”“]$`)
	quotedWord = lazyregexp.New(`^(?:--[^\s=]+=)?(?:"[^"]*"|'[^']*'|[“„][^”“]*[”“])(?:\s|$)`)
)

func unquoteWord(word string) (string, error) {
	bare := quoted.ReplaceAllString(word, "$1")
	if bare == word && strings.IndexAny(word, `"'“„`) == 0 {
		return "", complainAbout("The quote of `%s` is never closed.", PlainWord(word))
	}
	return bare, nil
}

// readOption makes --name=value of "--name value", and refuses options that there are not.
func readOption(word, line, flag string) (option, rest string, err error) {
	if flag != "" && strings.EqualFold(word, "--"+flag) {
		return "--" + flag, line, nil
	}
	name, value, has := strings.Cut(strings.TrimPrefix(word, "--"), "=")
	name = strings.ToLower(name)
	if !slices.Contains(options, name) {
		return "", "", complainAbout("The option `--%s` is not known.%s There are `--%s`; text that begins with two dashes goes on the line below.",
			PlainWord(name), suggest(name, "--", options), strings.Join(options, "`, `--"))
	}
	if !has {
		if value, line = nextWord(line); value == "" || isOption(value) {
			return "", "", complainAbout("The option `--%s` needs a value, as in `--%s=VALUE`.", name, name)
		}
	}
	value, err = unquoteWord(value)
	return "--" + name + "=" + value, line, err
}
