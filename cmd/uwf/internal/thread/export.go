package thread

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/bundle"
	"github.com/united-workforce/uwf/internal/wholefile"
)

// ExportOptions are what `uwf thread export` works with.
type ExportOptions struct {
	Factory *app.Factory
	Threads []string
	File    string
}

// NewCmdExport makes `uwf thread export`. A runF that is not nil replaces the run.
func NewCmdExport(f *app.Factory, runF func(context.Context, *ExportOptions) error) *cobra.Command {
	o := &ExportOptions{Factory: f}
	return &cobra.Command{
		Use:   "export THREAD... FILE",
		Short: "Write threads as a bundle for the TypeScript uwf",
		Long: `Write threads, alive or ended, as a bundle: a tar archive that the TypeScript uwf takes in
(ocas import FILE), and uwf-import, too. FILE must not be there yet; - is stdout.

Workflows, outputs, details, prompts and what was imported keep their hashes. Steps that
were made here get others: they go out without bodies, patches, checks and answers, and a
workflow without limits, approvals and checks. Imported here again, a thread is known by its
id. Where ocas has it already, first: ocas var delete @uwf/thread/ID`,
		Example:           `  uwf thread export 01JY0000000000000000000000 thread.tar`,
		Args:              cobra.MinimumNArgs(2),
		ValidArgsFunction: lookup.CompleteThread(f),
		RunE: app.Run(o, runF, exportRun, func(args []string) {
			o.Threads, o.File = args[:len(args)-1], args[len(args)-1]
		}),
	}
}

// exported is the JSON of `uwf thread export`.
type exported struct {
	File    string            `json:"file"`
	Threads []bundle.Exported `json:"threads"`
	Nodes   int               `json:"nodes"`
	Bytes   int               `json:"bytes"`
}

func exportRun(ctx context.Context, o *ExportOptions) error {
	f := o.Factory
	if err := o.checkFile(); err != nil {
		return err
	}
	threads, err := findThreads(ctx, f, o.Threads)
	if err != nil {
		return err
	}
	if _, err := lookup.Find(ctx, f.Store, o.File); err == nil { // by the end of its id
		return o.refuseThread()
	}
	_, v, err := lookup.Load(ctx, f.Store)
	if err != nil {
		return err
	}
	b, res := bundle.New(workflow.ForPeers), exported{File: o.File}
	for _, id := range slices.Sorted(maps.Keys(threads)) {
		e, err := b.Add(ctx, threads[id])
		if err != nil {
			return fmt.Errorf("export thread %s: %w", id, err)
		}
		res.Threads = append(res.Threads, e)
	}
	for _, note := range b.AddNames(v.Registry()) {
		f.Notes().Printf("%s\n", note)
	}
	data, err := b.Bytes()
	if err == nil && o.File == "-" {
		_, err = f.IO.Out.Write(data)
		return err
	}
	if err == nil {
		err = wholefile.Write(f.Path(o.File), bytes.NewReader(data), 0o600)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", o.File, err)
	}
	res.Nodes, res.Bytes = b.Nodes(), len(data)
	return f.Printer().Print(res, func(p *output.Writer) {
		for _, t := range res.Threads {
			p.Printf("thread %s: %d steps, %d nodes, its head is %s there\n", t.Thread, t.Steps, t.Nodes, t.Exported)
		}
		p.Good(fmt.Sprintf("wrote %s: %d nodes, %d bytes\n", res.File, res.Nodes, res.Bytes))
	})
}

// checkFile refuses a FILE that can't be written, before anything is read.
func (o *ExportOptions) checkFile() error {
	file := o.Factory.Path(o.File)
	folder, folderErr := os.Stat(filepath.Dir(file))
	_, err := os.Lstat(file)
	switch {
	case o.File == "-" && o.Factory.IO.OutTTY:
		return app.Usagef("a bundle is no text for a terminal: name a FILE, or send it on with a pipe")
	case o.File == "-":
		return nil
	case o.File == lookup.Latest || gitcas.ThreadID(strings.ToUpper(o.File)).Valid():
		return o.refuseThread()
	case err == nil:
		return app.Usagef("%s is there already: remove it, or name another FILE", o.File)
	case folderErr != nil || !folder.IsDir():
		return app.Usagef("write %s: there is no folder %s: make it, or name another FILE", o.File, filepath.Dir(file))
	}
	return nil
}

func (o *ExportOptions) refuseThread() error {
	return app.Usagef("the last argument is the FILE to write, and %s names a thread: add one, such as threads.tar", o.File)
}

// findThreads finds the threads that arguments name.
func findThreads(ctx context.Context, f *app.Factory, args []string) (map[gitcas.ThreadID]bundle.Thread, error) {
	out := map[gitcas.ThreadID]bundle.Thread{}
	for _, arg := range args {
		t, err := lookup.Find(ctx, f.Store, arg)
		if err != nil {
			return nil, err
		}
		if t.Ended != nil && t.Ended.Reason == gitcas.ReasonRemoved {
			return nil, app.Usagef("thread %s can't be exported: %s", t.ID, life.DescribeEnd(*t.Ended))
		}
		out[t.ID] = bundle.Thread{ID: t.ID, View: t.View, Entry: t.Entry, Ended: t.Ended}
	}
	return out, nil
}
