package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/config/table"
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
	v.walkSettings(allSettings(c), nil)
	return v.out
}

type valuer struct {
	c   *Config
	out []Value
}

func (v *valuer) walkSettings(s table.Setting, p Path) {
	if s.Get != nil {
		if x, ok := v.leafValue(s, p); ok {
			v.out = append(v.out, x)
			return
		}
	}
	for _, f := range s.Fields {
		v.walkSettings(f.Setting, pathBelow(p, f.Name))
	}
	if s.Names == nil {
		return
	}
	for _, name := range s.Names() {
		e := s.Entry(name)
		if s.Secretly != nil && s.Secretly(name) {
			e.Secret = true
		}
		v.walkSettings(e, pathBelow(p, name))
	}
}

func pathBelow(p Path, key string) Path { return append(slices.Clone(p), key) }

// leafValue is a leaf; ok is false where there is nothing to say.
func (v *valuer) leafValue(s table.Setting, p Path) (Value, bool) {
	x, set := s.Get()
	at := p.String()
	origin, said := v.c.Origins[at]
	out := Value{Path: p, Value: x, Set: set || said, Secret: s.Secret, Origin: v.originOf(p)}
	if s.Secret && p[0] == "providers" {
		v.describeKey(&out, p)
	}
	if !out.Set && s.OrElse != nil {
		out.Value, out.Set, out.Origin = s.OrElse, true, Origin{}
	}
	if s.Secret {
		out.Value = nil
	}
	out.Others = v.otherSources(s, p, origin)
	out.Note = describeMerge(p, origin, out.Others)
	if len(out.Others) > 0 && slices.ContainsFunc(v.c.Policies.all, func(x *policy) bool { return origin != "" && x.least.Origins[at] == origin }) {
		out.Note = "the policy counts"
	}
	return out, out.Set || s.Secret && out.Origin != (Origin{})
}

// describeKey says where a provider's key comes from: the file, or the variable.
func (v *valuer) describeKey(out *Value, p Path) {
	provider := v.c.Providers[p[1]]
	if _, inFile := v.c.Origins[p.String()]; inFile || provider.APIKeyEnv == "" {
		return
	}
	out.Origin = Origin{Variable: provider.APIKeyEnv, Source: v.c.sources[provider.APIKeyEnv]}
}

// originOf is that of the path itself; below a place that only the environment
// knows, that variable.
func (v *valuer) originOf(p Path) Origin {
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
	file, line, col := splitOrigin(text)
	return Origin{File: file, Line: line, Col: col}
}

// otherSources are the files that say something about a path as well.
func (v *valuer) otherSources(s table.Setting, p Path, origin string) []Other {
	var out []Other
	at := p.String()
	for _, file := range v.c.files {
		text, ok := file.Origins[at]
		if !ok || text == origin {
			continue
		}
		o := Other{Origin: v.c.parseOrigin(text)}
		if leaf, err := allSettings(file).At(p); err == nil && leaf.Get != nil && !s.Secret {
			o.Value, _ = leaf.Get()
		}
		out = append(out, o)
	}
	return out
}

// describeMerge explains how several sources of one setting were put together. An empty
// origin: the default counts.
func describeMerge(p Path, origin string, others []Other) string {
	if len(others) == 0 {
		return ""
	}
	switch {
	case p[0] == "limits" || p[0] == "gateway" || reflect.DeepEqual(p, Path{"redact", "minLength"}):
		return "the lowest counts"
	case p[0] == "sandbox" && origin == "":
		return "only ~/.uwf/config.yaml or UWF_TRUST_REPO=1 switches it off"
	case p[0] == "sandbox" || reflect.DeepEqual(p, Path{"confine", "network"}):
		return "the strictest counts"
	case p[0] == "allowShell":
		return "every file that mentions it must allow it"
	case p[0] == "redact" || p[0] == "confine" || p[0] == "fetch":
		return "all of them count"
	}
	return "overrides"
}

// noteWinner says in the merged c that a value comes from the home file, where it does
// although the repository's file says something too.
func noteWinner(c, repo, home *Config, p Path) {
	read := func(c *Config) any { v, _ := valueAt(c, p); return v }
	if v := read(c); read(home) == v && read(repo) != v {
		keepOrigin(c, home, p.String())
	}
}

// valueAt is the value of a setting, and whether it is set.
func valueAt(c *Config, p Path) (v any, set bool) {
	s, err := allSettings(c).At(p)
	if err != nil || s.Get == nil {
		return nil, false
	}
	return s.Get()
}
