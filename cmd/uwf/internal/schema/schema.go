// Package schema is `uwf schema`: what the commands print as JSON, described by
// JSON Schema. The files are checked by tests against the Go types and against
// what the commands really print.
package schema

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/internal/lists"
)

//go:embed files/*.json
var files embed.FS

const folder = "files"

// File is the name of a command's file; path is its words, with or without "uwf". Some
// commands print what another one prints.
func File(path string) string {
	switch path = strings.TrimPrefix(path, "uwf "); path {
	case "step list":
		path = "thread steps"
	case "step show", "step read":
		path = "thread step-details"
	case "thread watch":
		path = "thread wait"
	case "step fork":
		path = "thread fork"
	}
	return strings.ReplaceAll(path, " ", ".") + ".json"
}

// Of is the JSON Schema of what a command prints; false for one that prints text
// alone, or nothing.
func Of(command string) ([]byte, bool) {
	b, err := fs.ReadFile(files, path.Join(folder, File(command)))
	return b, err == nil
}

// Options are what `uwf schema` works with.
type Options struct {
	Factory *app.Factory
	Root    *cobra.Command
	Words   []string
}

// NewCmdSchema makes `uwf schema`. A runF that is not nil replaces the run.
func NewCmdSchema(f *app.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Factory: f}
	cmd := &cobra.Command{
		Use:   "schema [COMMAND...]",
		Short: "Print the JSON Schema of what a command prints",
		Long: `Print the JSON Schema of what a command prints with --format json; without a command,
list the commands that have one. Fields are only ever added: who reads the JSON of
this version can read that of later ones.`,
		Example: `  uwf schema
  uwf schema thread show
  uwf schema thread list --jq '.items.properties | keys[]'`,
		ValidArgsFunction: completeWords,
	}
	cmd.RunE = app.Run(o, runF, schemaRun, func(args []string) {
		o.Words, o.Root = args, cmd.Root()
	})
	return cmd
}

// entry is a line of the list.
type entry struct {
	Command string `json:"command"`
	Short   string `json:"short"`
}

func schemaRun(_ context.Context, o *Options) error {
	if len(o.Words) == 0 {
		return o.listSchemas()
	}
	cmd, err := findCommand(o.Root, o.Words)
	if err != nil {
		return err
	}
	b, ok := Of(cmd.CommandPath())
	if !ok {
		return app.Usagef("%s prints no JSON (see: uwf schema)", cmd.CommandPath())
	}
	return o.Factory.Printer().Print(json.RawMessage(b), func(w *output.Writer) { w.Printf("%s", b) })
}

// findCommand finds the command that the words name, by any of its names.
func findCommand(root *cobra.Command, words []string) (*cobra.Command, error) {
	words = strings.Fields(strings.ReplaceAll(strings.Join(words, " "), ".", " "))
	if len(words) > 0 && words[0] == root.Name() {
		words = words[1:]
	}
	cmd, rest, err := root.Find(words)
	if err != nil || len(rest) > 0 || cmd == root {
		names := lists.Map(schemaEntries(root), func(e entry) string { return e.Command })
		name := root.Name() + " " + strings.Join(words, " ")
		return nil, &app.UnknownError{What: "command", ID: name, Near: app.SuggestNames(name, names), See: "uwf schema"}
	}
	return cmd, nil
}

// schemaEntries are the commands below one that have a schema.
func schemaEntries(cmd *cobra.Command) []entry {
	var out []entry
	if _, ok := Of(cmd.CommandPath()); ok && cmd.HasParent() {
		out = append(out, entry{cmd.CommandPath(), cmd.Short})
	}
	for _, sub := range cmd.Commands() {
		out = append(out, schemaEntries(sub)...)
	}
	return out
}

func (o *Options) listSchemas() error {
	list := schemaEntries(o.Root)
	return o.Factory.Printer().Print(list, func(w *output.Writer) {
		output.WriteTable(w, nil, list, func(e entry) []string { return []string{e.Command, e.Short} })
	})
}

// completeWords completes the words of commands.
func completeWords(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	at, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	for _, sub := range at.Commands() {
		if len(schemaEntries(sub)) > 0 && strings.HasPrefix(sub.Name(), typed) {
			out = append(out, fmt.Sprintf("%s\t%s", sub.Name(), sub.Short))
		}
	}
	slices.Sort(out)
	return out, cobra.ShellCompDirectiveNoFileComp
}
