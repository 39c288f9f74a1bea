package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/strictyaml"
)

const (
	maxChecks = 16 // of a role
)

// reservedChecks are no checks' names: configuration has other settings of that name beside
// the checks' commands.
var reservedChecks = [...]string{"protect", "strict", "time"}

// checkForm is what the names of checks look like, which are keys of the configuration too.
var checkForm = lazyregexp.New(`^[a-z][a-z0-9-]{0,31}$`)

func (c *compiler) readRoles() {
	const fix = "write a map from a role's name to its description, goal, …"
	e := c.partOf("roles", "add `roles:` with at least one role", fix, maxRoles)
	if e == nil {
		return
	}
	if len(e.Val.Entries) == 0 && !e.Val.Broken {
		c.reportKey(e, fix, "`roles` is empty")
	}
	for i := range e.Val.Entries {
		if c.checkOutdented(&e.Val.Entries[i], e.Val.Entries[i+1:]) {
			return
		}
		c.readRole(&e.Val.Entries[i])
	}
}

// checkOutdented reports a role whose fields stand beside it instead of below it: once,
// not for each of them.
func (c *compiler) checkOutdented(role *strictyaml.Entry, after []strictyaml.Entry) bool {
	if !role.Val.IsNull() || len(after) < 2 {
		return false
	}
	if slices.ContainsFunc(after[:2], func(e strictyaml.Entry) bool { return !slices.Contains(roleKeys(), e.Key) }) {
		return false
	}
	c.reportKey(role, "indent "+after[0].Key+", "+after[1].Key+", … deeper than the role's name",
		"role %s is empty: its fields stand beside it", quoteName(role.Key))
	// What the other roles are can't be told either.
	c.rolesLost = true
	return true
}

// roleKeys are what a role may have.
func roleKeys() []string {
	return slices.Concat([]string{"description"}, schemaKeys(), slices.Concat(instructionStyles()...), []string{"checks"})
}

func (c *compiler) readRole(e *strictyaml.Entry) {
	what := "role " + quoteName(e.Key)
	role := roleAt{Role: Role{Name: e.Key, Capabilities: []string{}}, key: e}
	if c.isKind(e, strictyaml.Map, what, "give it description, goal, capabilities, procedure, output and frontmatter") {
		c.reportUnknownKeys(e.Val, what, roleKeys()...)
		role.Description = c.requireText(e.Val, "description", what, e.Pos)
		c.readInstructions(&role, e, what)
		role.Checks = c.readChecks(e, "`checks` of "+what)
		c.readSchema(&role, e)
	}
	c.roles = append(c.roles, role)
}

func (c *compiler) readCapabilities(role *strictyaml.Entry, what string) []string {
	out := []string{}
	e := role.Val.Get("capabilities")
	if e == nil {
		if !role.Val.Broken {
			c.problems.Add(role.Pos, 1, "add `capabilities: []`", "%s has no `capabilities`", what)
		}
		return out
	}
	if !c.isKind(e, strictyaml.List, "`capabilities` of "+what, "write a list of texts, [] for none") {
		return out
	}
	for _, item := range e.Val.Items {
		if s, ok := c.textOf(item, "a capability of "+what); ok {
			out = append(out, s)
		}
	}
	return out
}

// readChecks reads the names of a role's checks, in their order; nil: it has none.
func (c *compiler) readChecks(role *strictyaml.Entry, what string) []string {
	e := role.Val.Get("checks")
	if e == nil || !c.isKind(e, strictyaml.List, what, "write a list of names, such as [test, lint]") {
		return nil
	}
	switch n := len(e.Val.Items); {
	case n == 0:
		c.reportKey(e, "leave it out", "%s is empty", what)
	case n > maxChecks:
		c.reportKey(e, "let one check run several commands", "%s has %d names; the limit is %d", what, n, maxChecks)
		return nil
	}
	var out []string
	for _, item := range e.Val.Items {
		name, _ := item.Scalar.(string)
		switch {
		case item.Kind == strictyaml.Bad:
		case !checkForm.MatchString(name):
			c.reportValue(item, "write lower-case letters, digits and -, at most 32, a letter first",
				"%s names %s, which is no name of a check", what, showScalar(item))
		case slices.Contains(reservedChecks[:], name):
			c.reportValue(item, "give the check another name", "%s names %q, which is reserved: configuration has another use for it", what, name)
		case slices.Contains(out, name):
			c.reportValue(item, "remove one of the two", "%s names %q twice", what, name)
		default:
			out = append(out, name)
		}
	}
	return out
}

// instructionStyles are the keys by which the generations say what a role is to do.
func instructionStyles() [][]string {
	return [][]string{
		{"goal", "capabilities", "procedure", "output"},
		{"systemPrompt"}, // 2026-05-18
		{"identity", "prepare", "execute", "report"}, // between the two
	}
}

// readInstructions reads what the role is to do, in the words of one generation.
func (c *compiler) readInstructions(role *roleAt, e *strictyaml.Entry, what string) {
	var found []*strictyaml.Entry
	style := 0
	for i, keys := range instructionStyles() {
		for _, key := range keys {
			if at := e.Val.Get(key); at != nil {
				if found, style = append(found, at), i; len(found) == 2 {
					c.reportAmbiguous(what, found[0], found[1], "say what the role is to do by keys of one generation")
				}
				break
			}
		}
	}
	if len(found) > 1 {
		return
	}
	text := func(key string) string { return c.requireText(e.Val, key, what, e.Pos) }
	switch style {
	case 1:
		role.SystemPrompt = text("systemPrompt")
		if at := e.Val.Get("systemPrompt"); at.Val.Scalar == "" {
			c.reportKey(at, "say what the role is and does", "`systemPrompt` of %s is empty", what)
		}
	case 2:
		role.Goal, role.Output = text("identity"), text("report")
		role.Procedure = strings.TrimRight(text("prepare"), "\n") + "\n\n" + text("execute")
	default:
		role.Goal, role.Procedure, role.Output = text("goal"), text("procedure"), text("output")
		role.Capabilities = c.readCapabilities(e, what)
	}
}

// reportAmbiguous reports two constructs that say the same, or contradict each other.
func (c *compiler) reportAmbiguous(what string, a, b *strictyaml.Entry, fix string) {
	c.reportTwice(what, a, b, ", which are of different generations", fix)
}

func (c *compiler) reportTwice(what string, a, b *strictyaml.Entry, why, fix string) {
	if b.Pos.Line < a.Pos.Line {
		a, b = b, a
	}
	c.reportKey(b, fix, "%s has both `%s` (line %d) and `%s` (line %d)%s", what, a.Key, a.Pos.Line, b.Key, b.Pos.Line, why)
}

// schemaKeys are what the generations call the schema of a role's output.
func schemaKeys() []string { return []string{"frontmatter", "meta", "outputSchema"} }

// readSchema reads a role's schema, or the hash of one.
func (c *compiler) readSchema(role *roleAt, e *strictyaml.Entry) {
	what := "role " + quoteName(e.Key)
	var schema *strictyaml.Entry
	for _, key := range schemaKeys() {
		at := e.Val.Get(key)
		if at != nil && schema != nil {
			c.reportTwice(what, schema, at, ": they mean the same", "remove one of the two")
			return
		}
		if at != nil {
			schema = at
		}
	}
	if schema == nil {
		if !e.Val.Broken {
			key := "frontmatter"
			if role.SystemPrompt != "" {
				key = "outputSchema"
			}
			c.reportKey(e, "add `"+key+":` with a JSON schema of the role's output", "%s has no `%s`", what, key)
		}
		return
	}
	switch {
	case schema.Val.Kind == strictyaml.Map && c.stored == "":
		if schema.Val.Pos.File != schema.Pos.File {
			included, ok := c.inlineFile(schema, what)
			if !ok {
				return
			}
			schema.Val = included
		}
		role.schema = schema.Val
		plain, err := node.Normalize(schema.Val.Plain())
		if err != nil {
			c.reportKey(schema, "simplify the schema", "the schema of %s can't be stored: %v", what, err)
			return
		}
		role.Schema, role.known = plain, true
	case schema.Val.Kind == strictyaml.Scalar && node.Hash(schema.Val.Text).Valid():
		c.schemaByHash(role, schema.Val)
	case schema.Val.Kind != strictyaml.Bad:
		c.reportKey(schema, "write a JSON schema with `type: object`", "`%s` of %s must be a JSON schema, this is %s", schema.Key, what, schema.Val.KindName())
	}
}

func (c *compiler) schemaByHash(role *roleAt, v *strictyaml.Node) {
	h := node.Hash(v.Text)
	if c.opts.Nodes == nil {
		c.reportValue(v, "write the schema itself here", "role %q names a schema by hash, and there is no store to find it in", role.Name)
		return
	}
	n, err := c.opts.Nodes.Get(h)
	if err != nil {
		c.missing = cmp.Or(c.missing, fmt.Errorf("schema of role %q: %w", role.Name, err))
		c.reportValue(v, "store the schema first, or write it here", "role %q: schema %s can't be read: %v", role.Name, h, err)
		return
	}
	if n.Type != node.MetaSchema {
		c.reportValue(v, "name a schema node", "role %q: %s is no schema", role.Name, h)
		return
	}
	role.Schema, role.Frontmatter, role.schema, role.known = n.Payload, h, v, true
}
