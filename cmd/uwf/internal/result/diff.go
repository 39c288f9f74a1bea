package result

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/engine/patch"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/text"
)

// DiffOptions are what `uwf thread diff` works with.
type DiffOptions struct {
	Factory *app.Factory
	Thread  string
	Stat    bool
}

// NewCmdDiff makes `uwf thread diff`. A runF that is not nil replaces the run.
func NewCmdDiff(f *app.Factory, runF func(context.Context, *DiffOptions) error) *cobra.Command {
	o := &DiffOptions{Factory: f}
	cmd := lookup.TakeThread(f, &cobra.Command{
		Use:   "diff THREAD",
		Short: "Show what a thread changed",
		Long: `Show what a thread changed since the commit that it began from, as a unified diff. What is
needed is read from where the threads are kept, so that nothing has to be fetched before. Your
own uncommitted changes that the thread began with are no part of it.

Elsewhere than on a terminal it is the diff alone, as git apply reads it, where every file is
text.`,
		Example: "  uwf thread diff @latest\n  uwf thread diff @latest --stat",
		RunE:    app.Run(o, runF, diffRun, func(args []string) { o.Thread = args[0] }),
	})
	cmd.Flags().BoolVar(&o.Stat, "stat", false, "show how many lines each file gained and lost, alone")
	return cmd
}

// changed is a file in results.
type changed struct {
	Path    string `json:"path"`
	Change  string `json:"change"` // added, modified or deleted
	Added   *int   `json:"added,omitempty"`
	Removed *int   `json:"removed,omitempty"` // lines; neither is known of what is no text
}

// diffResult is the JSON of `uwf thread diff`.
type diffResult struct {
	Thread gitcas.ThreadID `json:"thread"`
	Base   string          `json:"base"`   // empty: the thread began with an empty folder
	Commit string          `json:"commit"` // that it is compared with
	Branch string          `json:"branch"`
	Files  []changed       `json:"files"`
	Diff   string          `json:"diff,omitempty"`
}

func diffRun(ctx context.Context, o *DiffOptions) error {
	w, err := readWork(ctx, o.Factory, o.Thread)
	if err != nil {
		return err
	}
	files, err := w.collectFiles(ctx)
	if err != nil {
		return err
	}
	var diff bytes.Buffer
	stats, err := patch.Write(&diff, files, o.Factory.Now)
	if err != nil {
		return fmt.Errorf("write the diff of thread %s: %w", w.ID, err)
	}
	out := diffResult{Thread: w.ID, Branch: w.Entry.Work.Branch, Files: listFiles(stats)}
	if !w.base.IsZero() {
		out.Base = w.base.String()
	}
	if !w.tip.IsZero() {
		out.Commit = w.tip.String()
	}
	if !o.Stat {
		out.Diff = diff.String()
	}
	if len(stats) == 0 {
		o.Factory.Notes().Println(w.describeEmpty())
	}
	var failed error
	err = o.Factory.Printer().Or(output.Text).Print(out, func(p *output.Writer) {
		switch {
		case o.Stat:
			writeStat(p, stats)
		case o.Factory.IO.OutTTY:
			writeDiff(p, out.Diff)
		default: // byte by byte, for git apply
			_, failed = io.WriteString(o.Factory.IO.Out, out.Diff)
		}
	})
	return errors.Join(err, failed)
}

func listFiles(stats []record.PatchFile) []changed {
	out := make([]changed, len(stats))
	for i, s := range stats {
		out[i] = changed{Path: s.Path, Change: s.Change}
		if s.Counted {
			out[i].Added, out[i].Removed = &stats[i].Added, &stats[i].Removed
		}
	}
	return out
}

// blobs are the hashes of a file before and after.
var blobs = lazyregexp.New(`^(index [0-9a-f]{7})[0-9a-f]*(\.\.[0-9a-f]{7})[0-9a-f]*`)

// writeDiff writes a diff in the colours, and with the short hashes, that git gives it.
func writeDiff(p *output.Writer, diff string) {
	head := true
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "diff --git "):
			head = true
			p.Bold(line)
		case strings.HasPrefix(line, "@@"):
			head = false
			p.Faint(line)
		case head:
			p.Bold(blobs.ReplaceAllString(line, "$1$2"))
		case line[0] == '+':
			p.Good(line)
		case line[0] == '-':
			p.Bad(line)
		default:
			p.Printf("%s", line)
		}
	}
}

// barWidth is the length of the longest bar, in characters.
const barWidth = 30

// writeStat writes how much each file changed, with a bar.
func writeStat(p *output.Writer, stats []record.PatchFile) {
	width, most, added, removed := 0, 1, 0, 0
	for _, s := range stats {
		width, most = max(width, utf8.RuneCountInString(s.Path)), max(most, s.Added+s.Removed)
		added, removed = added+s.Added, removed+s.Removed
	}
	width = min(width, 44)
	for _, s := range stats {
		p.Printf("%-*s  ", width, output.Line(s.Path, width))
		if !s.Counted {
			p.Printf("%s, no text\n", s.Change)
			continue
		}
		scale := func(n int) int { return (n*min(barWidth, most) + most - 1) / most }
		p.Printf("%4d ", s.Added+s.Removed)
		p.Good(strings.Repeat("+", scale(s.Added)))
		p.Bad(strings.Repeat("-", scale(s.Removed)))
		p.Println()
	}
	p.FaintLine(summary(len(stats), added, removed))
}

// summary is a change in one line.
func summary(files, added, removed int) string {
	return fmt.Sprintf("%s, %d lines added, %d removed", text.Plural(files, "file"), added, removed)
}
