package variables

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/workflow/template"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/strictyaml"
)

// Mustache checks one template, whose language is mustache.
func Mustache(in Template) {
	if reportForeign(in) {
		return
	}
	t, err := template.Parse(in.plainText())
	if err != nil {
		in.Problems.AddWithin(in.Text, in.What, err)
		return
	}
	if in.Unknown {
		return
	}
	s := &sections{names: names{Template: in, warned: map[string]bool{}, stepInto: stepIntoList}, seen: map[string]int{}}
	if in.Output != nil {
		s.levels = []level{rootLevel(*in.Output)}
	}
	s.findInverted(t.Tags())
	s.checkTags(t.Tags())
}

// Tags of languages that look like mustache: Handlebars' blocks, and what stands in
// them; Liquid's and Jinja's tags.
var (
	handlebars      = lazyregexp.New(`\{\{~?\s*#(if|unless|each|with)\s+[^{}]+\}\}`)
	handlebarsInner = lazyregexp.New(`\{\{~?\s*(else|this|@index|@key)\b[^{}]*\}\}`)
	liquidTag       = lazyregexp.New(`\{%-?\s*(if|unless|for|case|assign|capture|set)\s[^{}%]+%\}`)
)

// reportForeign reports such tags, and whether there were any: then nothing else can be
// said about the template.
func reportForeign(in Template) bool {
	const sections = "write {{#field}}…{{/field}} for what is there or for each item of a list, {{^field}}…{{/field}} for what isn't"
	text := in.plainText()
	blocks, tags := handlebars.FindAllStringSubmatchIndex(text, maxWrong), liquidTag.FindAllStringSubmatchIndex(text, maxWrong)
	if len(blocks) > 0 {
		blocks = append(blocks, handlebarsInner.FindAllStringSubmatchIndex(text, maxWrong)...)
	}
	report := func(m []int, wrong, fix string) {
		at, length := in.Text.Within(m[0], m[1]-m[0])
		in.Problems.Add(at, length, fix, "%s: %s: %s", in.What, text[m[0]:m[1]], wrong)
	}
	for _, m := range blocks {
		word, fix := text[m[2]:m[3]], sections
		switch {
		case word == "this":
			fix = "write {{.}} for the item of a section"
		case strings.HasPrefix(word, "@"):
			fix = "leave it out"
		}
		report(m, "mustache has no "+word, fix)
	}
	for _, m := range tags {
		report(m, "this is Liquid, and templates are mustache", "add `version: 1` at the top, which makes all templates Liquid; or "+sections)
	}
	return len(blocks)+len(tags) > 0
}

// sections checks the tags of one template. Without levels it is $START's.
type sections struct {
	names
	levels []level        // innermost last
	seen   map[string]int // how often each name was used so far
}

// tagAt is the place of the tag with a name that was seen last.
func (s *sections) tagAt(name string) place {
	return func() (strictyaml.Pos, int) {
		re, err := regexp.Compile(`\{\{[{&#^]?\s*` + regexp.QuoteMeta(name) + `\s*\}\}\}?`)
		if err != nil {
			return s.Text.Pos, 1
		}
		found := re.FindAllStringIndex(s.plainText(), s.seen[name])
		if len(found) < s.seen[name] {
			return s.Text.Pos, s.Text.Length()
		}
		last := found[len(found)-1]
		return s.Text.Within(last[0], last[1]-last[0])
	}
}

func (s *sections) checkTags(tags []template.Tag) {
	for _, t := range tags {
		if s.isFull() {
			return
		}
		u := s.useVariable(t.Name)
		if t.Kind == template.Variable {
			s.warnLacking(s.tagAt(t.Name), t.Name, u.lacks, "{{#"+u.lacks+"}}…{{/"+u.lacks+"}}")
		}
		levels, asked := s.levels, s.asked
		if levels != nil && t.Kind == template.Section { // nothing of a section is left that nothing fills
			s.levels, s.asked = append(slices.Clone(levels), innerLevel(u.schema)), append(slices.Clone(asked), u.field())
		}
		s.checkTags(t.Tags)
		s.levels, s.asked = levels, asked
	}
}

// findInverted collects the names of sections for what is not there: whoever writes one
// knows that it may not be.
func (s *sections) findInverted(tags []template.Tag) {
	for _, t := range tags {
		if t.Kind == template.Inverted {
			s.warned[t.Name] = true
		}
		s.findInverted(t.Tags)
	}
}

// useVariable looks one name up and reports what is wrong with it.
func (s *sections) useVariable(name string) use {
	s.seen[name]++
	wrong, fix := wrongName(name)
	switch {
	case name == "." && s.levels == nil:
		wrong, fix = "$START has no output to fill it with", "write the text itself"
	case name == ".":
		return use{schema: s.levels[len(s.levels)-1].self}
	case wrong != "":
	case s.levels == nil:
		s.warnUnfilled(s.tagAt(name), name)
		return use{}
	default:
		parts := strings.Split(name, ".")
		u, found := s.lookupName(parts[0])
		if found {
			u, wrong, fix = s.followName(u, parts[1:])
		} else {
			var known []string
			for _, l := range s.levels {
				known = append(known, levelNames(l)...)
			}
			wrong, fix = s.unknownField(parts[0], known)
		}
		if wrong == "" {
			return u
		}
	}
	s.report(s.tagAt(name), fix, "{{%s}}: %s", name, wrong)
	return use{}
}

// stepIntoList says that mustache goes through lists by sections alone.
func stepIntoList(m map[string]any, path, part string) (next any, wrong, fix string, known bool) {
	if m["type"] == "array" || m["items"] != nil {
		return nil, path + " is a list", "use a section: {{#" + path + "}}{{" + part + "}}{{/" + path + "}}", true
	}
	return nil, "", "", false
}

// lookupName finds a name in the innermost level that has it.
func (s *sections) lookupName(name string) (u use, found bool) {
	for i, l := range slices.Backward(s.levels) {
		if _, ok := l.fields[name]; ok {
			return s.beginName(l, fmt.Sprintf("%d ", i), name), true
		}
		if l.open {
			return use{}, true
		}
	}
	return use{}, false
}

// wrongName reports what mustache doesn't have: filters, expressions, paths with
// empty parts.
func wrongName(name string) (wrong, fix string) {
	switch {
	case name == ".":
		return "", ""
	case strings.Contains(name, "|"):
		return "mustache has no filters", "write {{" + strings.TrimSpace(strings.SplitN(name, "|", 2)[0]) + "}}"
	case strings.ContainsAny(name, " \t\n"):
		return "a name has no spaces", "write one field's name between the braces"
	case strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.Contains(name, ".."):
		return "a dotted name has an empty part", "write it as field.inner"
	case strings.ContainsAny(name, "[]()'\"=<>{}"):
		return "mustache has no expressions", "write a field's name; use {{#list}}…{{/list}} for its items"
	}
	return "", ""
}
