// Package workflow reads workflow definitions: YAML to one compiled form, that
// form to its nodes, and back. It reports every mistake at once, with its place
// and a fix. It is pure: it never opens a file (text that a definition includes
// comes from a function of the caller's) and never decides what runs next (that
// is package moderator).
//
// Definitions of every generation are read, and files that mix them, as long as
// what they say can be understood one way:
//
//   - A role is told what to do by systemPrompt; by identity, prepare, execute and
//     report; or by goal, capabilities, procedure and output: by one of the three.
//     Its schema is called frontmatter, meta or outputSchema, whichever.
//   - The edges of a role are a list (the first that matches is taken, whatever the
//     status) or a map from statuses, each role's as it likes. A condition stands
//     in a list only.
//   - A condition is JSONata, or a map {description, expression}.
//   - $START is a list, or a map with _ or new, and resume beside either.
//   - version: 1 makes templates Liquid, requires a status of every role with a
//     map, and lets every role suspend by `$status: $SUSPEND`. Without it templates
//     are mustache, and roles may suspend so where $START has new.
//   - $SUSPEND may be the target of any edge.
//   - location, limits and !include are for all.
//   - Names in templates of $START's edges come out empty, since nothing has run that
//     could fill them in. That is warned of, and so are fields that a template takes for
//     granted and an output fits without, and those that a schema requires and does not
//     list.
//   - Anchors, aliases and merge keys (<<) are read as what they stand for. Keys that
//     begin with x- are the author's own, in every map but that of roles, edges and
//     conditions by their names, and inside of schemas.
package workflow
