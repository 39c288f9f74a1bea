// Package workflow reads workflow definitions: YAML to one compiled form, that
// form to its nodes, and back. It reports every mistake at once, with its place
// and a fix. It is pure: it never opens a file (text that a definition includes
// comes from a function of the caller's) and never decides what runs next (that
// is package moderator).
package workflow
