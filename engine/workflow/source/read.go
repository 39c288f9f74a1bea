package source

import (
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/internal/strictyaml"
	"github.com/united-workforce/uwf/internal/text"
)

// Read reads a YAML file and what it includes. Name is the file, slash-separated,
// for messages. Include returns the content of a file for !include, by its
// slash-separated name relative to the folder of name, which is lexically inside
// it; nil: nothing can be included. What is wrong is added to problems; what could not be
// read is of kind Bad.
func Read(problems *Problems, name string, data []byte, include func(name string) ([]byte, error)) *strictyaml.Node {
	r := &strictyaml.Reader{Aliases: true, Include: include}
	r.Report = func(f strictyaml.Fault) { problems.Add(f.At, f.Len, f.Fix, "%s", f.Message) }
	return r.ReadYAML(name, string(data))
}

// SyntaxError says why a text of a definition is no template or no condition. Offset and
// Length are in bytes within the text; Offset is -1 where the place is not known.
type SyntaxError struct {
	Offset, Length int
	Message        string
	Fix            string
	// Name is what is not known, Known are names that are.
	Name  string
	Known []string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s (%s)", e.Message, e.Fix) }

// AddWithin reports what is wrong in a text; what names it.
func (ps *Problems) AddWithin(v *strictyaml.Node, what string, err error) {
	var bad *SyntaxError
	if !errors.As(err, &bad) {
		bad = &SyntaxError{Offset: -1, Message: err.Error(), Fix: "correct the text"}
	}
	at, length := v.Within(bad.Offset, bad.Length)
	ps.Add(at, length, text.DidYouMean(bad.Name, bad.Known, bad.Fix), "%s: %s", what, bad.Message)
}
