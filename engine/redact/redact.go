// Package redact takes secrets out of text, values and streams before anything is
// hashed, committed, logged or shown. It knows secrets by value, in every form a
// program is likely to print them, and by shape. It is pure: it never reads the
// environment, files or the clock, and never keeps what it redacted.
//
// It never redacts by shape alone what uwf and git themselves print all the time:
// node hashes, thread ids and object ids.
package redact

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/united-workforce/uwf/engine/redact/internal/literal"
)

// DefaultMinLength is the number of bytes below which a value is not searched for:
// a shorter one would be found in ordinary words.
const DefaultMinLength = 6

// DefaultMaxBytes is the most that one call of Value or Find accepts.
const DefaultMaxBytes = 64 << 20

const (
	maxDepth = 256      // levels of lists and maps in Value
	maxValue = 64 << 10 // bytes of one known secret
	open     = "[redacted:"
)

// Errors of this package; all mean that nothing was let through.
var (
	ErrTooLarge = errors.New("too large to be searched for secrets")
	ErrTooDeep  = errors.New("nested too deeply to be searched for secrets")
	ErrType     = errors.New("value of a type that can't be searched for secrets")
	ErrOptions  = errors.New("redaction options are unusable")
)

// Secret is a value that must not be seen, and the name that stands in its place.
type Secret struct {
	Name  string // for example the environment variable; never the value
	Value string
}

// Pattern is a shape of secrets, as a regular expression (RE2).
type Pattern struct {
	Name string
	// Expr is matched against the text as it is. Where it has a group named
	// "secret", only that group is replaced, else the whole match.
	Expr string
}

// Options say what is secret. The zero value knows the built-in shapes alone.
type Options struct {
	Secrets  []Secret
	Patterns []Pattern // besides the built-in shapes
	// Allow names what is no secret although it has the shape or the value of one:
	// keys in test data, documented examples. See CheckAllow.
	Allow     []string
	MinLength int  // of a value in bytes; 0: DefaultMinLength
	MaxBytes  int  // of one input; 0: DefaultMaxBytes
	NoShapes  bool // search for Secrets and Patterns only
}

// Finding is one secret in a text. It never holds the secret.
type Finding struct {
	Name  string // of the secret, shape or pattern
	Known bool   // a secret known by value
	// Token: it has the look of a token itself, or that of a pattern of the options.
	// Where it isn't Known either, only what stands around it says that it is secret.
	Token   bool
	Pattern bool // of the options
	Offset  int  // of its first byte
	Line    int  // from 1
	// Sum is the SHA-256 of what is not Known, as an entry of Options.Allow has it.
	Sum string
}

// Redactor replaces secrets by "[redacted:<name>]". It is immutable and safe for
// concurrent use.
type Redactor struct {
	opts  Options
	index literal.Index
	// secretNames are the names of the known secrets, as the index numbers them.
	secretNames []string
	shapes      []shape
	patterns    []compiled
	names       map[string]bool
	allow       allowed
	digits      bool // a known value may appear as a number
}

type compiled struct {
	name  string
	re    *regexp.Regexp
	group int
}

// New prepares a Redactor. It fails with ErrOptions when a pattern doesn't compile
// or a value can't be told from a placeholder.
func New(o Options) (*Redactor, error) {
	if o.MinLength <= 0 {
		o.MinLength = DefaultMinLength
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	o.Secrets, o.Patterns, o.Allow = slices.Clone(o.Secrets), slices.Clone(o.Patterns), slices.Clone(o.Allow)
	r := &Redactor{opts: o, names: map[string]bool{}}
	var err error
	if r.allow, err = readAllow(o.Allow); err != nil {
		return nil, err
	}
	if err := r.addPatterns(); err != nil {
		return nil, err
	}
	known, err := r.addSecrets()
	if err != nil {
		return nil, err
	}
	if !o.NoShapes {
		r.shapes = builtinShapes()
		for i, s := range r.shapes {
			r.names[s.name] = true
			for _, p := range s.prefixes {
				r.index.Add(literal.Literal{Text: []byte(p), Shape: i, Secret: -1})
			}
		}
	}
	r.index.Build()
	return r, r.nameSecrets(known)
}

func (r *Redactor) addPatterns() error {
	for _, p := range r.opts.Patterns {
		re, err := regexp.Compile(p.Expr)
		if err != nil {
			return fmt.Errorf("%w: pattern %q: %w", ErrOptions, p.Name, err)
		}
		if re.MatchString("") {
			return fmt.Errorf("%w: pattern %q matches the empty text: make it match the secret alone", ErrOptions, p.Name)
		}
		name := cleanName(p.Name, "pattern")
		r.names[name] = true
		r.patterns = append(r.patterns, compiled{name: name, re: re, group: max(re.SubexpIndex("secret"), 0)})
	}
	return nil
}

// addSecrets indexes every form of every value that is worth searching for.
func (r *Redactor) addSecrets() ([]Secret, error) {
	var known []Secret
	seen := map[string]bool{}
	for _, s := range r.opts.Secrets {
		if len(s.Value) > maxValue {
			return nil, fmt.Errorf("%w: the value of %q has %d bytes, the limit is %d", ErrOptions, s.Name, len(s.Value), maxValue)
		}
		for _, v := range searchedParts(s.Value) {
			if isTrivial(v, r.opts.MinLength) || r.allow.isAllowed(v, sumOf([]byte(v))) {
				continue
			}
			if strings.Contains(v, open) {
				return nil, fmt.Errorf("%w: the value of %q looks like a placeholder", ErrOptions, s.Name)
			}
			if seen[v] {
				continue
			}
			seen[v] = true
			r.digits = r.digits || isNumeric(v)
			for _, l := range encodedForms(v) {
				l.Secret, l.Shape = len(known), -1
				r.index.Add(l)
			}
			known = append(known, Secret{Name: cleanName(s.Name, "secret"), Value: v})
		}
	}
	return known, nil
}

// nameSecrets gives every secret a name under which its placeholder holds no
// secret itself, so that redacting twice changes nothing.
func (r *Redactor) nameSecrets(known []Secret) error {
	taken := map[string]string{}
	numbered := 0
	for _, s := range known {
		name, done := taken[s.Name]
		for name = cmp.Or(name, s.Name); !done && len(r.findSpans([]byte(span{name: name}.placeholder()))) > 0; {
			numbered++
			if numbered > len(known)+100 {
				return fmt.Errorf("%w: no placeholder is free of the known values", ErrOptions)
			}
			name = fmt.Sprintf("secret-%d", numbered)
		}
		taken[s.Name] = name
		r.names[name] = true
		r.secretNames = append(r.secretNames, name)
	}
	return nil
}

// With is a Redactor that knows these secrets as well.
func (r *Redactor) With(secrets ...Secret) (*Redactor, error) {
	o := r.opts
	o.Secrets = append(slices.Clone(o.Secrets), secrets...)
	return New(o)
}

// String replaces all secrets in s and says how many there were. Doing it twice
// changes nothing more.
func (r *Redactor) String(s string) (string, int) {
	b, n := []byte(s), 0
	// It is repeated until nothing is found: what is left of and right of a placeholder may
	// read differently once the secret between them is gone. Each round turns text into
	// placeholders, which are never searched, so it ends.
	for {
		spans := r.findSpans(b)
		if len(spans) == 0 {
			break
		}
		n += len(spans)
		b = replaceSpans(b, spans, span.placeholder)
	}
	if n == 0 {
		return s, 0
	}
	return string(b), n
}

// Find names the secrets in b, in the order of their offsets; more than MaxBytes
// is ErrTooLarge. It needs little memory besides b, whatever b holds.
func (r *Redactor) Find(b []byte) ([]Finding, error) {
	if len(b) > r.opts.MaxBytes {
		return nil, fmt.Errorf("search %d bytes for secrets: %w (limit %d)", len(b), ErrTooLarge, r.opts.MaxBytes)
	}
	var out []Finding
	line, offset := 1, 0
	emit := func(text []byte, spans []span) error {
		at := 0
		for _, s := range spans {
			line += bytes.Count(text[at:s.from], []byte{'\n'})
			at = s.from
			out = append(out, Finding{Name: s.name, Known: s.kind == known, Token: s.kind == token, Pattern: s.pattern, Offset: offset + at, Line: line, Sum: s.sum})
		}
		line += bytes.Count(text[at:], []byte{'\n'})
		offset += len(text)
		return nil
	}
	if len(b) <= maxHeld {
		err := emit(b, r.findRaw(b, true, nil))
		return out, err
	}
	s := stream{r: r, sums: true, emit: emit}
	err := errors.Join(s.writeChunk(b), s.emitAll())
	return out, err
}

// placeholder stands in the place of a secret.
func (s span) placeholder() string { return open + s.name + "]" }

// replaceSpans replaces each span by what with gives for it.
func replaceSpans(b []byte, spans []span, with func(span) string) []byte {
	out := make([]byte, 0, len(b))
	at := 0
	for _, s := range spans {
		out = append(out, b[at:s.from]...)
		out = append(out, with(s)...)
		at = s.to
	}
	return append(out, b[at:]...)
}

// cleanName keeps a name to characters that mean nothing in Markdown, shell,
// JSON or a workflow command.
func cleanName(name, otherwise string) string {
	clean := strings.Map(func(c rune) rune {
		if c <= unicode.MaxASCII && dotChar(byte(c)) {
			return c
		}
		return '-'
	}, name)
	return cmp.Or(clean[:min(len(clean), 64)], otherwise)
}
