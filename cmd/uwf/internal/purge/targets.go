package purge

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/gitcas/node"
)

// maxText is the largest file or stdin that is read, in bytes. Longer texts are
// refused anyway.
const maxText = 1 << 20

// targets are what is to be taken out.
type targets struct {
	needle *redact.Needle // nil: no text
	hashes []node.Hash
	argued bool // a text stood in the arguments
}

// readTargets reads the arguments. Its errors name an argument by its number alone.
func readTargets(o *Options) (*targets, error) {
	if len(o.Args) == 0 {
		return nil, app.Usagef("say what to take out: - for stdin, @FILE, the text itself, or the hash of a node")
	}
	t := &targets{}
	var texts []string
	var numbers []int
	stdin := false
	for i, arg := range o.Args {
		text, isText, err := o.readTarget(t, arg, &stdin)
		if err != nil {
			return nil, app.Usagef("argument %d: %w", i+1, err)
		}
		if isText {
			texts, numbers = append(texts, text), append(numbers, i+1)
		}
	}
	if len(texts) == 0 {
		return t, nil
	}
	needle, bad, err := redact.NewNeedle(texts)
	if err != nil {
		return nil, app.Usagef("argument %d: %w", numbers[bad], err)
	}
	t.needle = needle
	return t, nil
}

// readTarget reads one argument: a text, or the hash of a node, which goes to t.
func (o *Options) readTarget(t *targets, arg string, stdin *bool) (text string, isText bool, err error) {
	name, isFile := strings.CutPrefix(arg, "@")
	switch {
	case arg == "-" && *stdin:
		return "", false, errors.New("stdin can be read only once")
	case arg == "-":
		*stdin = true
		b, err := o.Read("-", maxText)
		return strings.TrimRight(string(b), "\r\n"), true, err
	case isFile && name != "":
		b, err := o.Read(name, maxText)
		if err != nil {
			err = explainUnreadable(err)
		}
		return strings.TrimRight(string(b), "\r\n"), true, err
	case !o.Text && node.Hash(arg).Valid():
		t.hashes = append(t.hashes, node.Hash(arg))
		return "", false, nil
	}
	t.argued = true
	return arg, true, nil
}

// explainUnreadable says why a file can't be read, but not its name: it may be no file's, but
// a text that begins with @.
func explainUnreadable(err error) error {
	why := fmt.Sprintf("it is no file, or larger than %d bytes", maxText)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		why = "it is not there"
	case errors.Is(err, fs.ErrPermission):
		why = "you may not read it"
	}
	return fmt.Errorf("the file after the @ can't be read: %s; a text that begins with @ goes through stdin: uwf purge -", why)
}

// cleanText takes what is looked for out of a text.
func (t *targets) cleanText(s string) string {
	if t.needle != nil {
		s, _ = t.needle.Replace(s, nil)
	}
	return s
}
