package strictyaml

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ReadJSON reads a file with one JSON value. One that can't be read is of kind Bad, which
// was reported.
func (r *Reader) ReadJSON(name, text string) *Node {
	src := &File{Name: name, data: text}
	if !r.admitFile(src) {
		return &Node{Pos: src.place(1, 1)}
	}
	j := newJSONReader(r, src)
	n, ok := j.readValue(0)
	after := j.nextPos()
	if _, err := j.dec.Token(); ok && !errors.Is(err, io.EOF) {
		r.report(after, 1, "keep one value in the file", "there is something after the JSON value")
		ok = false
	}
	if !ok {
		n.Kind = Bad
	}
	return n
}

// ReadJSONAtBegin reads the JSON value that a text begins with, and returns what stands
// behind it.
func (r *Reader) ReadJSONAtBegin(text string) (n *Node, rest string) {
	j := newJSONReader(r, &File{data: text})
	n, _ = j.readValue(0)
	return n, j.data[j.dec.InputOffset():]
}

// jsonReader walks the tokens of a JSON text and keeps track of places.
type jsonReader struct {
	*Reader
	dec    *json.Decoder
	data   string
	at     Pos
	offset int // of at
}

func newJSONReader(r *Reader, src *File) *jsonReader {
	j := &jsonReader{Reader: r, data: strings.TrimPrefix(src.data, "\ufeff"), at: src.place(1, 1)}
	j.dec = json.NewDecoder(strings.NewReader(j.data))
	j.dec.UseNumber()
	return j
}

// nextPos is the place of the next token.
func (j *jsonReader) nextPos() Pos {
	next := int(j.dec.InputOffset())
	next += len(j.data[next:]) - len(strings.TrimLeft(j.data[next:], " \t\r\n,:"))
	for j.offset < next {
		c, size := utf8.DecodeRuneInString(j.data[j.offset:])
		j.offset += size
		switch {
		case c == '\r' && strings.HasPrefix(j.data[j.offset:], "\n"): // counted with the \n
		case strings.ContainsRune("\n\r\u0085\u2028\u2029", c): // what the YAML library takes for the end of a line
			j.at.Line, j.at.Col = j.at.Line+1, 1
		default:
			j.at.Col++
		}
	}
	return j.at
}

// nextToken reads one token; false: it can't be read, which was reported.
func (j *jsonReader) nextToken(at Pos) (json.Token, bool) {
	t, err := j.dec.Token()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		j.report(at, 1, "close what is open, or give all of it", "the JSON value is not closed; it may be cut off")
	case err != nil:
		j.report(at, 1, "check quotes, commas and brackets here and before", "not valid JSON: %v", err)
	}
	return t, err == nil
}

// readValue reads one value. What can't be read is of kind Bad, and ends the reading.
func (j *jsonReader) readValue(depth int) (v *Node, ok bool) {
	v = &Node{Pos: j.nextPos()}
	t, ok := j.nextToken(v.Pos)
	if !ok || !j.countValue(v.Pos, depth) {
		return v, false
	}
	switch t := t.(type) {
	case json.Delim:
		v.Kind = List
		if t == '{' {
			v.Kind = Map
		}
		return v, j.readInside(v, depth)
	case json.Number:
		v.Text = t.String()
		v.Scalar = scalarOf(v.Text)
	case string:
		v.Text, v.Scalar, v.Quoted = t, t, true
	case bool:
		v.Text, v.Scalar = strconv.FormatBool(t), t
	case nil:
		v.Text = "null"
	}
	v.Kind = Scalar
	return v, true
}

// readInside reads what a list or a map holds, up to its end.
func (j *jsonReader) readInside(v *Node, depth int) bool {
	first := map[string]Pos{}
	for j.dec.More() {
		at, key, fresh := j.nextPos(), "", true
		if v.Kind == Map {
			t, ok := j.nextToken(at)
			if !ok {
				return false
			}
			key, _ = t.(string) // the decoder lets nothing else be a key
			fresh = j.noteKey(first, key, at)
		}
		inside, ok := j.readValue(depth + 1)
		switch {
		case !ok:
			return false
		case v.Kind == List:
			v.Items = append(v.Items, inside)
		case fresh:
			v.Entries = append(v.Entries, Entry{Key: key, Pos: at, Val: inside})
		}
	}
	_, ok := j.nextToken(j.nextPos())
	return ok
}
