package convert

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// EncodingError says why a file has another form than its working-tree-encoding asks for.
type EncodingError struct {
	Encoding string // as .gitattributes has it
	Err      error
}

func (e *EncodingError) Error() string {
	return fmt.Sprintf("working-tree-encoding=%s: %v", e.Encoding, e.Err)
}

func (e *EncodingError) Unwrap() error { return e.Err }

var (
	errUnknown = errors.New("uwf can't convert this encoding")
	errContent = errors.New("the content is not text of this encoding")
	errNoMark  = errors.New("the file begins with no byte order mark, which this encoding needs")
	errMark    = errors.New("the file begins with a byte order mark, which this encoding must not have")
)

// encodingOf returns the name of an encoding, empty if nothing is to be converted.
func encodingOf(value string) string {
	if wideName(value) == "8" {
		return ""
	}
	return value
}

// wideName returns what follows "UTF" or "UTF-" in the name of an encoding, in upper case; empty
// if the name begins otherwise. Git takes both spellings for one.
func wideName(name string) string {
	rest, ok := strings.CutPrefix(strings.ToUpper(name), "UTF")
	if !ok {
		return ""
	}
	return strings.TrimPrefix(rest, "-")
}

// wide is a form of UTF-16 or UTF-32.
type wide struct {
	big, little order
	mark        string // what a file begins with; empty: it must not begin with a mark
	isBig       bool   // the order of bytes that is written, and that no mark stands for
	unmarked    bool   // a file without the mark is read as well
}

// order is one order of bytes: its mark, and its encoding, which does not touch marks.
type order struct {
	mark string
	enc  encoding.Encoding
}

var (
	big16    = order{"\xfe\xff", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)}
	little16 = order{"\xff\xfe", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)}
	big32    = order{"\x00\x00\xfe\xff", utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)}
	little32 = order{"\xff\xfe\x00\x00", utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)}
)

// wideForms are by the results of wideName. A name without an order of bytes writes the one
// that glibc writes on today's processors.
var wideForms = map[string]wide{
	"16":       {big: big16, little: little16, mark: little16.mark},
	"16LE-BOM": {big: big16, little: little16, mark: little16.mark, unmarked: true},
	"16BE-BOM": {big: big16, little: little16, mark: big16.mark, isBig: true},
	"16LE":     {big: big16, little: little16},
	"16BE":     {big: big16, little: little16, isBig: true},
	"32":       {big: big32, little: little32, mark: little32.mark},
	"32LE":     {big: big32, little: little32},
	"32BE":     {big: big32, little: little32, isBig: true},
}

// decodeMarked reads a file in the order of its mark.
func (w wide) decodeMarked(file []byte) ([]byte, error) {
	for _, o := range []order{w.big, w.little} {
		rest, marked := bytes.CutPrefix(file, []byte(o.mark))
		switch {
		case !marked:
		case w.mark == "":
			return nil, errMark
		default:
			return decodeExactly(o.enc, rest)
		}
	}
	if w.mark != "" && !w.unmarked {
		return nil, errNoMark
	}
	return decodeExactly(w.writtenOrder().enc, file)
}

func (w wide) encodeMarked(stored []byte) ([]byte, error) {
	if w.mark == "" && bytes.HasPrefix(stored, []byte("\ufeff")) {
		return nil, errMark // no git would read it again
	}
	body, err := encodeExactly(w.writtenOrder().enc, stored)
	if err != nil {
		return nil, err
	}
	return append([]byte(w.mark), body...), nil
}

func (w wide) writtenOrder() order {
	if w.isBig {
		return w.big
	}
	return w.little
}

// decodeFile returns a file of the folder as UTF-8.
func (f Form) decodeFile(file []byte) ([]byte, error) {
	return f.recodeBy(file, wide.decodeMarked, decodeExactly)
}

// encodeStored returns stored UTF-8 as the file of the folder has it.
func (f Form) encodeStored(stored []byte) ([]byte, error) {
	return f.recodeBy(stored, wide.encodeMarked, encodeExactly)
}

func (f Form) recodeBy(
	data []byte, byWide func(wide, []byte) ([]byte, error), byName func(encoding.Encoding, []byte) ([]byte, error),
) (out []byte, err error) {
	if f.encoding == "" || len(data) == 0 {
		return data, nil
	}
	if w, ok := wideForms[wideName(f.encoding)]; ok {
		out, err = byWide(w, data)
	} else if enc, found := narrowEncoding(f.encoding); found {
		out, err = byName(enc, data)
	} else {
		err = errUnknown
	}
	if err != nil {
		return nil, &EncodingError{f.encoding, err}
	}
	return out, nil
}

// unlikeGit are the encodings whose tables differ from those of glibc, which git uses: a file
// would change when a person's git and uwf take turns.
var unlikeGit = []encoding.Encoding{
	charmap.KOI8U, charmap.Macintosh, japanese.EUCJP, japanese.ISO2022JP, japanese.ShiftJIS,
	korean.EUCKR, simplifiedchinese.HZGB2312, traditionalchinese.Big5,
}

// narrowEncoding finds an encoding by its name at IANA.
func narrowEncoding(name string) (enc encoding.Encoding, ok bool) {
	enc, err := ianaindex.IANA.Encoding(name)
	if err != nil || enc == nil || slices.Contains(unlikeGit, enc) {
		return nil, false
	}
	return enc, true
}

// decodeExactly decodes what encodes to the same bytes again, so that nothing is lost.
func decodeExactly(enc encoding.Encoding, file []byte) ([]byte, error) {
	data, err := enc.NewDecoder().Bytes(file)
	if err != nil {
		return nil, errContent
	}
	again, err := enc.NewEncoder().Bytes(data)
	if err != nil || !bytes.Equal(again, file) {
		return nil, errContent
	}
	return data, nil
}

// encodeExactly encodes what decodes to the same text again.
func encodeExactly(enc encoding.Encoding, stored []byte) ([]byte, error) {
	file, err := enc.NewEncoder().Bytes(stored)
	if err != nil {
		return nil, errContent
	}
	again, err := enc.NewDecoder().Bytes(file)
	if err != nil || !bytes.Equal(again, stored) {
		return nil, errContent
	}
	return file, nil
}
