// Package importer is the program uwf-import: moving threads and workflows of the TypeScript
// uwf over to the store, with their hashes. It reads and never changes what it moves.
package importer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/internal/program"
	"github.com/united-workforce/uwf/cmd/uwf-import/internal/ocas"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/lists"
)

// Options are what uwf-import works with.
type Options struct {
	Store    func(context.Context) (*gitcas.Store, error) // one that may not exist yet
	Redactor func(context.Context) (*redact.Redactor, error)
	Factory  *app.Factory
	Paths    []string
	DryRun   bool
	Settings string // the file that settings are written to; empty: none is
}

// NewRoot makes the command line of uwf-import.
func NewRoot(f *app.Factory) *cobra.Command {
	f.ReadSettings = readStoreSettings
	o := &Options{Factory: f, Store: f.NewStore, Redactor: f.Redactor}
	cmd := &cobra.Command{
		Use:   "uwf-import PATH...",
		Short: "Move threads and workflows of the TypeScript uwf over",
		Long: `Move threads and workflows of the TypeScript uwf over to the store. Each PATH is

  its store (~/.ocas, ~/.uncaged/json-cas), with nodes (<HASH>.bin) and since
  2026-06 the lists (vars/_store.db),
  its storage root, with threads.yaml, workflows.yaml or history.jsonl of before
  (~/.uwf, ~/.uncaged/workflow), or
  a bundle: ocas export @uwf/thread/ID... -o threads.tar

Give them together: the lists name threads, whose nodes must be in one of the others.
Nodes keep their hashes, so what was reviewed is what is here; those of before
2026-06-02, which were hashed by another rule, are found by the former ones as well.
One commit for each step; a thread that is there already is left as it is, so an
import that was broken off goes on where it stopped, and a later one brings the steps
that were made since, unless somebody has worked on the thread here. A node that
doesn't hash to its name, doesn't fit its schema or holds a secret keeps its thread
out; a list, or part of one, that can't be read is named below problems. Nothing in
PATH is changed.

Exit code 1: something was left out; the result says why.`,
		Example: "  uwf-import \"$HOME/.ocas\" \"$HOME/.uwf\" --dry-run\n  uwf-import threads.tar",
		Version: program.ReadBuild(f.Release, f.Commit).Version,
		Args:    cobra.MinimumNArgs(1),
		RunE:    app.Run(o, nil, importRun, func(args []string) { o.Paths = args }),
	}
	program.AddOutput(f, cmd, func(*cobra.Command) bool { return true })
	cmd.CompletionOptions.DisableDefaultCmd = true
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "check everything, write nothing")
	cmd.Flags().StringVar(&o.Settings, "settings", "", "write the settings that can be taken over to `FILE`, to look at")
	return cmd
}

// result is the JSON of uwf-import.
type result struct {
	Threads   []moved      `json:"threads"`
	Workflows []registered `json:"workflows"`
	// Problems are what could not be read; what depends on it is left out.
	Problems []ocas.Problem `json:"problems"`
	Settings *settings      `json:"settings,omitempty"`
	DryRun   bool           `json:"dryRun"`
}

// The outcomes.
const (
	imported = "imported"
	exists   = "exists"
	refused  = "refused"
)

// moved is what became of a thread.
type moved struct {
	Thread   gitcas.ThreadID `json:"thread"`
	Workflow node.Hash       `json:"workflow,omitempty"`
	Name     string          `json:"name,omitempty"`
	Steps    int             `json:"steps"`
	Added    int             `json:"added"` // the steps that the store didn't have
	Status   string          `json:"status"`
	Result   string          `json:"result"`             // imported, exists or refused
	Rehashed int             `json:"rehashed,omitempty"` // nodes that have other hashes here
	Why      string          `json:"why,omitempty"`
}

// registered is what became of a workflow's name.
type registered struct {
	Name     string    `json:"name"`
	Hash     node.Hash `json:"hash"`
	Result   string    `json:"result"`
	Rehashed int       `json:"rehashed,omitempty"` // nodes that have other hashes here
	Why      string    `json:"why,omitempty"`
}

func importRun(ctx context.Context, o *Options) error {
	src, err := o.openSource()
	if err != nil {
		return err
	}
	if err := src.CheckEnough(); err != nil {
		return app.Usagef("%w", err)
	}
	m := &mover{o: o, src: src}
	if m.store, err = o.Store(ctx); err != nil {
		return err
	}
	if m.redact, err = o.Redactor(ctx); err != nil {
		return err
	}
	res := result{Threads: []moved{}, Workflows: []registered{}, Problems: src.Problems(), DryRun: o.DryRun}
	var secrets []redact.Secret
	if res.Settings, secrets, err = o.takeSettings(); err != nil {
		return err
	}
	if m.redact, err = m.redact.With(secrets...); err != nil {
		return fmt.Errorf("search for the keys of the settings: %w", err)
	}
	if !o.DryRun {
		if _, err := m.store.Init(ctx); err != nil {
			return err
		}
	}
	err = m.moveAll(ctx, &res)
	err = errors.Join(o.Factory.Printer().Print(res, res.writeText), err)
	return app.ExitAfter(err, !res.leftOut(), app.CodeFailed)
}

// takeSettings looks for settings in what was named, and where uwf has its own.
func (o *Options) takeSettings() (*settings, []redact.Secret, error) {
	dirs := lists.Map(o.Paths, o.Factory.Path)
	if root, err := o.Factory.StorageRoot(); err == nil { // else there is none
		dirs = append(dirs, root)
	}
	s, secrets := findSettings(dirs)
	switch {
	case o.Settings == "":
		return s, secrets, nil
	case s != nil && s.Loads:
		return nil, nil, app.Usagef("--settings %s: there is nothing to write: uwf reads %s as it is", o.Settings, s.File)
	case s == nil || len(s.text) == 0:
		return nil, nil, app.Usagef("--settings %s: there is nothing to write: no config.yaml with settings of the TypeScript uwf is in the folders named", o.Settings)
	}
	return s, secrets, s.saveText(o.Factory.Path(o.Settings))
}

// openSource opens everything that was named.
func (o *Options) openSource() (*ocas.Source, error) {
	known := node.Map(record.Schemas())
	maps.Copy(known, node.Builtin())
	src := ocas.New(known)
	for _, name := range o.Paths {
		if err := addPath(src, name, o.Factory.Path(name)); err != nil {
			return nil, app.Usagef("%s: %w", name, err)
		}
	}
	return src, nil
}

func addPath(src *ocas.Source, name, path string) (err error) {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		src.AddFolder(name, os.DirFS(path))
		return nil
	}
	if !info.Mode().IsRegular() {
		return errors.New("neither a folder nor a file")
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if isSQLite(f) {
		return errors.New("it is a database of the store; give the folder of the store (~/.ocas), which has the nodes as well")
	}
	src.AddBundle(name, f)
	return nil
}

// isSQLite looks at the first bytes of a file.
func isSQLite(f *os.File) bool {
	const magic = "SQLite format 3\x00"
	b := make([]byte, len(magic))
	_, err := f.ReadAt(b, 0)
	return (err == nil || errors.Is(err, io.EOF)) && string(b) == magic
}

func (r result) leftOut() bool {
	return len(r.Problems) > 0 || slices.ContainsFunc(r.Threads, func(t moved) bool { return t.Result == refused }) ||
		slices.ContainsFunc(r.Workflows, func(w registered) bool { return w.Result == refused })
}

func (r result) writeText(w *output.Writer) {
	for _, t := range r.Threads {
		w.Bold(string(t.Thread))
		w.Printf("  workflow %s, %d steps, %s: %s\n", cmp.Or(t.Name, "unknown"), t.Steps, t.Status, describeResult(t.Result, r.DryRun))
		if t.Result == imported && t.Added < t.Steps {
			w.Printf("  %d of the steps are new\n", t.Added)
		}
		writeWhy(w, describeRehashed(t.Rehashed))
		writeWhy(w, t.Why)
	}
	for _, f := range r.Workflows {
		w.Bold(f.Name)
		w.Printf("  %s: %s\n", f.Hash, describeResult(f.Result, r.DryRun))
		writeWhy(w, describeRehashed(f.Rehashed))
		writeWhy(w, f.Why)
	}
	for _, p := range r.Problems {
		w.Printf("could not be read: %s\n", p)
	}
	if r.Settings != nil {
		r.Settings.writeText(w)
	}
	if r.DryRun {
		w.Faint("nothing was written; leave --dry-run out to import")
		w.Println()
	}
}

func describeResult(result string, dry bool) string {
	if dry && result == imported {
		return "can be imported"
	}
	return result
}

func describeRehashed(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d nodes of the json-cas era have other hashes here; uwf cas get finds them by the former ones", n)
}

func writeWhy(w *output.Writer, text string) {
	if text != "" {
		w.Printf("  %s\n", text)
	}
}
