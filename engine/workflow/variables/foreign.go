package variables

import (
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

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
		switch word := text[m[2]:m[3]]; {
		case word == "this":
			report(m, "mustache has no this", "write {{.}} for the item of a section")
		case strings.HasPrefix(word, "@"):
			report(m, "mustache has no "+word, "leave it out")
		default:
			report(m, "mustache has no "+word, sections)
		}
	}
	for _, m := range tags {
		report(m, "this is Liquid, and templates are mustache", "add `version: 1` at the top, which makes all templates Liquid; or "+sections)
	}
	return slices.Max([]int{len(blocks), len(tags)}) > 0
}
