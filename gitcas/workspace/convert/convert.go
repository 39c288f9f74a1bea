// Package convert changes files between the form that they have in a working folder and the
// form that git stores: line ends and encodings, by the rules of git's convert.c with
// core.autocrlf=false on Linux. It works on bytes alone and never runs a filter.
package convert

import (
	"bytes"

	"github.com/united-workforce/uwf/gitcas/workspace/ignore"
)

// Attributes are the names that [FormOf] asks for.
var Attributes = []string{"text", "eol", "crlf", "working-tree-encoding", "filter"}

// Form is how a file lies in a working folder. The zero Form is the one that git stores.
type Form struct {
	// Filter is the program that git would put the file through; empty: none.
	Filter   string
	text     bool // it is text
	auto     bool // it is text unless it looks binary
	crlf     bool // its lines end in CRLF
	encoding string
}

// FormOf reads what the attributes say of a file.
func FormOf(attributes map[string]string) Form {
	f := Form{encoding: encodingOf(attributes["working-tree-encoding"])}
	if filter := attributes["filter"]; filter != ignore.Set && filter != ignore.Unset {
		f.Filter = filter
	}
	text := attributes["text"]
	if text == "" {
		text = attributes["crlf"] // the old name
	}
	eol := attributes["eol"]

	switch {
	case text == ignore.Unset:
		return f
	case text == "auto":
		f.auto = true
	case text == ignore.Set, text == "input", eol == "lf", eol == "crlf":
		f.text = true
	default:
		return f
	}
	f.crlf = eol == "crlf"
	return f
}

// ToGit returns what git stores of a file. If the stored content has CRLF already, which stored
// reports, ToGit leaves CRLF in the file. Git does so for text=auto if the stored content looks
// like text; otherwise it would rewrite the whole file. If the file can't be converted, ToGit
// returns it as it is, and an *EncodingError.
func (f Form) ToGit(file []byte, stored func() (hasCRLF bool)) ([]byte, error) {
	data, err := f.decodeFile(file)
	if err != nil {
		return file, err
	}
	if !f.text && !f.auto {
		return data, nil
	}
	n := countBytes(data)
	if n.crlf == 0 || f.auto && n.isBinary() || stored() {
		return data, nil
	}
	return bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), nil
}

// ToFolder returns what git writes into a working folder: the stored content itself, or another
// one that may lie in buf until buf is used again. If the stored content can't be converted,
// ToFolder returns it as it is, and an *EncodingError.
func (f Form) ToFolder(stored []byte, buf *[]byte) ([]byte, error) {
	file, err := f.encodeStored(f.addCRLF(stored, buf))
	if err != nil {
		return stored, err
	}
	return file, nil
}

// addCRLF makes the lines end in CRLF. It leaves data that has CRLF already, also where git would
// make all lines alike: they would come back as changes that nobody made.
func (f Form) addCRLF(data []byte, buf *[]byte) []byte {
	if !f.crlf {
		return data
	}
	if !f.text || bytes.IndexByte(data, '\r') >= 0 {
		n := countBytes(data)
		if n.loneLF == 0 || n.crlf > 0 || f.auto && (n.loneCR > 0 || n.isBinary()) {
			return data
		}
	}

	out := (*buf)[:0]
	for line := range bytes.Lines(data) {
		if bytes.HasSuffix(line, []byte("\n")) {
			out = append(append(out, line[:len(line)-1]...), '\r', '\n')
		} else {
			out = append(out, line...)
		}
	}
	*buf = out
	return out
}

// HasCRLF reports whether stored content has CRLF.
func HasCRLF(stored []byte) bool { return bytes.Contains(stored, []byte("\r\n")) }

// byteCounts are git's text_stat.
type byteCounts struct{ loneCR, loneLF, crlf, printable, unprintable, nul int }

func countBytes(data []byte) (n byteCounts) {
	for i, c := range data {
		switch {
		case c == '\r' && i+1 < len(data) && data[i+1] == '\n':
			n.crlf++
		case c == '\r':
			n.loneCR++
		case c == '\n' && (i == 0 || data[i-1] != '\r'):
			n.loneLF++
		case c == '\n':
		case c == 0:
			n.nul++
			n.unprintable++
		case c == 0x7f, c < ' ' && c != '\b' && c != '\t' && c != '\033' && c != '\f':
			n.unprintable++
		default:
			n.printable++
		}
	}
	if bytes.HasSuffix(data, []byte{0x1a}) { // DOS ends files so
		n.unprintable--
	}
	return n
}

// isBinary is git's guess.
func (n byteCounts) isBinary() bool {
	return n.loneCR > 0 || n.nul > 0 || n.printable>>7 < n.unprintable
}
