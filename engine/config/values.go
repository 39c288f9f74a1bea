package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Value is one setting as it is in effect.
type Value struct {
	Path Path
	// Value is a string, int64, float64, bool or []string; nil where nothing is set
	// or the setting is secret.
	Value  any
	Secret bool // never shown
	Set    bool // something is set, by a file, the environment or a default
	Origin Origin
	// Note says why this value counts where several sources say something.
	Note string
	// Others are what other sources say and what doesn't count, or counts too.
	Others []Other
}

// Other is what a source says beside the one that counts.
type Other struct {
	Origin Origin
	Value  any // nil: secret
}

// Origin is where a value comes from. The zero value: uwf's own default, or
// something that follows from another setting.
type Origin struct {
	File      string
	Line, Col int
	Variable  string // of the environment
	Source    string // of the variable: "the environment", or the file it stands in
}

func (o Origin) String() string {
	switch {
	case o.Variable != "" && o.Source != "" && o.Source != Environment:
		return "variable " + o.Variable + " in " + o.Source
	case o.Variable != "":
		return "variable " + o.Variable
	case o.Line > 0:
		return fmt.Sprintf("%s:%d", o.File, o.Line)
	case o.File != "":
		return o.File
	}
	return "default"
}

// Values are all settings that are set or have a default, in the order of the
// table; entries by name.
func (c *Config) Values() []Value {
	v := valuer{c: c}
	v.walk(table(c), nil)
	return v.out
}

type valuer struct {
	c   *Config
	out []Value
}

func (v *valuer) walk(s setting, p Path) {
	if s.get != nil {
		if x, ok := v.value(s, p); ok {
			v.out = append(v.out, x)
			return
		}
	}
	for _, f := range s.fields {
		v.walk(f.setting, below(p, f.name))
	}
	if s.names == nil {
		return
	}
	for _, name := range s.names() {
		e := s.entry(name)
		if s.secretly != nil && s.secretly(name) {
			e.secret = true
		}
		v.walk(e, below(p, name))
	}
}

func below(p Path, key string) Path { return append(slices.Clone(p), key) }

// value is a leaf; ok is false where there is nothing to say.
func (v *valuer) value(s setting, p Path) (Value, bool) {
	x, set := s.get()
	at := p.String()
	origin, said := v.c.Origins[at]
	out := Value{Path: p, Value: x, Set: set || said, Secret: s.secret, Origin: v.origin(p)}
	if s.secret && p[0] == "providers" {
		v.key(&out, p)
	}
	if !out.Set && s.orElse != nil {
		out.Value, out.Set, out.Origin = s.orElse, true, Origin{}
	}
	if s.secret {
		out.Value = nil
	}
	out.Others = v.others(s, p, origin)
	out.Note = note(p, out.Others)
	return out, out.Set || s.secret && out.Origin != (Origin{})
}

// key says where a provider's key comes from: the file, or the variable.
func (v *valuer) key(out *Value, p Path) {
	provider := v.c.Providers[p[1]]
	if _, inFile := v.c.Origins[p.String()]; inFile || provider.APIKeyEnv == "" {
		return
	}
	out.Origin = Origin{Variable: provider.APIKeyEnv, Source: v.c.sources[provider.APIKeyEnv]}
}

// origin is that of the path itself; below a place that only the environment
// knows, that variable.
func (v *valuer) origin(p Path) Origin {
	for n := len(p); n > 0; n-- {
		text, ok := v.c.Origins[p[:n].String()]
		if !ok {
			continue
		}
		o := v.c.parseOrigin(text)
		if n == len(p) || o.Variable != "" {
			return o
		}
		break // beside it in a file, but not written there: it follows from the rest
	}
	return Origin{}
}

func (c *Config) parseOrigin(text string) Origin {
	if name, ok := strings.CutPrefix(text, "$"); ok {
		return Origin{Variable: name, Source: c.sources[name]}
	}
	file, line, col := place(text)
	return Origin{File: file, Line: line, Col: col}
}

// others are the files that say something about a path as well.
func (v *valuer) others(s setting, p Path, origin string) []Other {
	var out []Other
	at := p.String()
	for _, file := range v.c.files {
		text, ok := file.Origins[at]
		if !ok || text == origin {
			continue
		}
		o := Other{Origin: v.c.parseOrigin(text)}
		if leaf, err := table(file).at(p); err == nil && leaf.get != nil && !s.secret {
			o.Value, _ = leaf.get()
		}
		out = append(out, o)
	}
	return out
}

// note explains how several sources of one setting were put together.
func note(p Path, others []Other) string {
	if len(others) == 0 {
		return ""
	}
	switch {
	case p[0] == "limits" || reflect.DeepEqual(p, Path{"redact", "minLength"}):
		return "the lowest counts"
	case p[0] == "sandbox":
		return "the strictest counts"
	case p[0] == "allowShell":
		return "every file that mentions it must allow it"
	case p[0] == "redact":
		return "all of them count"
	}
	return "overrides"
}

// at is the setting at a path. A path that leads nowhere is an *UnknownPathError.
func (s setting) at(p Path) (setting, error) {
	cur := s
	for i, key := range p {
		switch {
		case cur.fields != nil:
			f := slices.IndexFunc(cur.fields, func(f field) bool { return f.name == key })
			if f < 0 {
				advice := cur.adviceFor(key)
				if i >= 2 { // below a name that people chose
					advice += "; a name with a dot in it stands in quotes"
				}
				return setting{}, &UnknownPathError{Path: p, At: i, Advice: advice}
			}
			cur = cur.fields[f].setting
		case cur.entry != nil:
			hidden := cur.secretly != nil && cur.secretly(key)
			if cur = cur.entry(key); hidden {
				cur.secret = true
			}
		default:
			return setting{}, &UnknownPathError{Path: p, At: i, Advice: fmt.Sprintf("%s is a %s", p[:i], cur.kind)}
		}
	}
	return cur, nil
}

// UnknownPathError says that there is no such setting.
type UnknownPathError struct {
	Path   Path
	At     int // the first key that is wrong
	Advice string
}

func (e *UnknownPathError) Error() string {
	return fmt.Sprintf("there is no setting %.200s: unknown key %.80q; %s", e.Path.String(), e.Path[e.At], e.Advice)
}

// winner says in the merged c that a value comes from the home file, where it does
// although the repository's file says something too.
func winner(c, repo, home *Config, p Path) {
	read := func(c *Config) any {
		s, err := table(c).at(p)
		if err != nil {
			return nil
		}
		v, _ := s.get()
		return v
	}
	if v := read(c); read(home) == v && read(repo) != v {
		keepOrigin(c, home, p.String())
	}
}

// plainDuration writes a time without parts that are zero: 2h, not 2h0m0s.
func plainDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
