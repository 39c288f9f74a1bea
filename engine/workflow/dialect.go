package workflow

import (
	"cmp"
	"strings"

	"github.com/united-workforce/uwf/engine/workflow/liquid"
	"github.com/united-workforce/uwf/engine/workflow/template"
	"github.com/united-workforce/uwf/engine/workflow/variables"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/strictyaml"
)

// Dialect is a generation of the format. Where two mean the same, a definition is
// of the later one: what an author wrote as the architecture page has it is of the
// status-map dialect where nothing in it is different there.
type Dialect string

// The dialects, oldest first.
const (
	Conditions   Dialect = "conditions"   // 2026-05-18: lists of {role, condition}, JSONata
	Architecture Dialect = "architecture" // the architecture page: conditions or status maps, mustache
	StatusMap    Dialect = "status-map"   // 2026-06-04: status → {role, prompt}, mustache
	Liquid       Dialect = "liquid"       // 0.2–0.8: version: 1, Liquid
)

// generation is all that depends on the dialect of a definition. Everything else may
// stand in a definition of any dialect, and is asked of the Definition.
type generation struct {
	templates language
	// mustHaveStatus says that there is no edge `_` for outputs without a status.
	mustHaveStatus bool
	// suspends says that any role may answer with the status $SUSPEND; elsewhere the graph
	// says when to suspend, unless $START has a `new` edge.
	suspends bool
	// stored is the type of its nodes, where that can hold all of a definition.
	stored node.Hash
}

// language is what prompts and locations are written in.
type language struct {
	check func(variables.Template)
	parse func(text string) (filler, error)
}

// filler is a template that data is filled into.
type filler interface {
	Render(data map[string]any) (string, error)
}

// generationOf is what a dialect decides; false: there is none of that name.
func generationOf(d Dialect) (generation, bool) {
	mustache := language{variables.Mustache, func(text string) (filler, error) { return template.Parse(text) }}
	g, ok := map[Dialect]generation{
		Conditions:   {templates: mustache, stored: record.OwnWorkflowSchema},
		Architecture: {templates: mustache, stored: record.OwnWorkflowSchema},
		// Nodes with new and resume too: 0.3.0 stored them so, and only builds between two
		// releases had a schema of their own for them.
		StatusMap: {templates: mustache, stored: record.WorkflowSchema},
		Liquid: {
			templates:      language{variables.Liquid, func(text string) (filler, error) { return liquid.Parse(text) }},
			mustHaveStatus: true, suspends: true, stored: record.LiquidWorkflowSchema,
		},
	}[d]
	return g, ok
}

func (d *Definition) findGeneration() generation {
	g, _ := generationOf(cmp.Or(d.Dialect, StatusMap))
	return g
}

// Fill fills in a prompt or location.
func (d *Definition) Fill(text string, data map[string]any) (string, error) {
	if !strings.Contains(text, "{") {
		return text, nil
	}
	t, err := d.findGeneration().templates.parse(text)
	if err != nil {
		return "", err
	}
	return t.Render(data)
}

// readVersion reads the mark of the generation with Liquid templates.
func (c *compiler) readVersion() {
	e := c.root.Get("version")
	if e == nil {
		return
	}
	c.def.Dialect = Liquid // whatever it says
	if e.Val.Scalar != int64(1) && e.Val.Kind != strictyaml.Bad {
		c.reportValue(e.Val, "write `version: 1` for Liquid templates, or no version for mustache", "version %s of the format is not known", showScalar(e.Val))
	}
}

// findDialect is the dialect of a definition without a version, by what it holds: the
// same whether it was parsed or read from its node.
func (d *Definition) findDialect() Dialect {
	for _, r := range d.Roles {
		if r.SystemPrompt != "" {
			return Conditions
		}
	}
	if len(d.Conditions) > 0 || len(d.Lists) > 0 {
		return Architecture
	}
	return StatusMap
}

// findStatusKey is the status field of the whole definition. No dialect says it, since an
// author may take the page's key in a later one: $status, unless only that is declared.
func (d *Definition) findStatusKey() string {
	key := StatusField
	for _, r := range d.Roles {
		switch declaredKey(r.Schema) {
		case StatusField:
			return StatusField
		case LegacyStatusField:
			key = LegacyStatusField
		}
	}
	return key
}
