package step

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// ReadOptions are what `uwf thread read` works with.
type ReadOptions struct {
	Factory *app.Factory
	Thread  string
	Quota   int
	Before  string
	Start   bool
}

// NewCmdRead makes `uwf thread read`. A runF that is not nil replaces the run.
func NewCmdRead(f *app.Factory, runF func(context.Context, *ReadOptions) error) *cobra.Command {
	o := &ReadOptions{Factory: f}
	cmd := lookup.TakeThread(f, &cobra.Command{
		Use:   "read THREAD",
		Short: "Read a thread from beginning to end",
		Long: `Read a thread from beginning to end as Markdown: its task, then each step with what people
were asked and said before it, its output and its body. What others wrote is quoted.

With --quota only the last steps that fit are printed, and how to get those before
them. The last step is always there; where it is too long, its body is cut, and so is
the task. With --before the task is left out. --start prints it whole in any case.`,
		Example: `  uwf thread read 01JY0000000000000000000000
  uwf thread read 01JY0000000000000000000000 --quota 4000
  uwf thread read 01JY0000000000000000000000 --quota 4000 --before 2`,
		RunE: app.Run(o, runF, readRun, func(args []string) { o.Thread = args[0] }),
	})
	cmd.Flags().IntVar(&o.Quota, "quota", 0, "print steps of so many `CHARACTERS` together at most; 0 is all")
	app.RefuseNegative(cmd, "quota")
	cmd.Flags().StringVar(&o.Before, "before", "", "print only what comes before this `STEP`: its number or hash")
	cmd.Flags().BoolVar(&o.Start, "start", false, "print the whole task, whatever else is left out")
	return cmd
}

// story is the JSON of `uwf thread read`.
type story struct {
	Thread   gitcas.ThreadID `json:"thread"`
	Workflow node.Hash       `json:"workflow"`
	Name     string          `json:"name"`
	Status   string          `json:"status"`
	Title    string          `json:"title,omitempty"`
	By       *record.By      `json:"by,omitempty"` // who started it
	Prompt   string          `json:"prompt"`
	Steps    []shown         `json:"steps"`
	// Earlier is how many steps were left out at the beginning, for want of room.
	Earlier int `json:"earlier,omitempty"`
	// Cut is how many characters of the only step's body were left out, PromptCut how
	// many of the prompt.
	Cut       int `json:"cut,omitempty"`
	PromptCut int `json:"promptCut,omitempty"`
}

func readRun(ctx context.Context, o *ReadOptions) error {
	t, err := lookup.Find(ctx, o.Factory.Store, o.Thread)
	if err != nil {
		return err
	}
	chain, err := t.View.ReadChain(ctx, t.ID)
	if err != nil {
		return err
	}
	end, err := stepsBefore(chain, o.Before, t.ID)
	if err != nil {
		return err
	}
	s := story{Thread: t.ID, Workflow: chain.Start.Workflow, Status: t.Status(), Prompt: chain.Start.Prompt, Title: chain.Start.Title, By: chain.Start.By}
	if s.Name, err = reading.WorkflowName(ctx, t.View, chain.Start.Workflow); err != nil {
		return err
	}
	if err := s.readSteps(ctx, t, chain.Steps[:end], o.Quota); err != nil {
		return err
	}
	if !o.Start {
		s.Prompt, s.PromptCut = fitQuota(s.Prompt, o.Quota)
	}
	return o.Factory.Printer().Or(output.Text).Print(s, func(w *output.Writer) { s.writeMarkdown(w, o) })
}

// stepsBefore is how many steps come before the one that --before names: all of them
// where it names none.
func stepsBefore(chain gitcas.Chain, arg string, id gitcas.ThreadID) (int, error) {
	if arg == "" {
		return len(chain.Steps), nil
	}
	n, err := strconv.Atoi(arg)
	if h, herr := node.ReadHash(arg); herr == nil {
		n = 1 + slices.IndexFunc(chain.Steps, func(s gitcas.ChainStep) bool { return s.Hash == h })
	} else if err != nil {
		return 0, app.Usagef("--before %.80q is neither the number of a step nor a step's hash", arg)
	}
	if n < 1 || n > len(chain.Steps)+1 {
		return 0, app.Usagef("--before %.80s is no step of thread %s, which has %d (see: uwf thread steps %s)", arg, id, len(chain.Steps), id)
	}
	return n - 1, nil
}

// readSteps reads steps from the last one on, until the quota is used up; 0 is no
// quota. One step is always read: where it is longer, its body is cut.
func (s *story) readSteps(ctx context.Context, t *lookup.Thread, steps []gitcas.ChainStep, quota int) error {
	results, err := t.Results(ctx)
	if err != nil {
		return err
	}
	s.Steps, s.Earlier = []shown{}, len(steps)
	for used := 0; s.Earlier > 0; s.Earlier-- {
		one, err := readStep(ctx, t, s.Earlier, steps[s.Earlier-1], results[s.Earlier-1])
		if err != nil {
			return err
		}
		if quota > 0 {
			if used += utf8.RuneCountInString(renderText(one.writeMarkdown)); used > quota && len(s.Steps) > 0 {
				break
			}
			if over := used - quota; over > 0 {
				one.Body, s.Cut = cutEnd(one.Body, over)
			}
		}
		s.Steps = append(s.Steps, one)
	}
	slices.Reverse(s.Steps)
	return nil
}

// cutEnd leaves out the end of a text, and says how many characters.
func cutEnd(text string, over int) (string, int) {
	r := []rune(text)
	keep := max(len(r)-over, 0)
	return string(r[:keep]), len(r) - keep
}

func (s story) writeMarkdown(w *output.Writer, o *ReadOptions) {
	task := o.Before == "" || o.Start
	if task {
		s.writeBeginning(w, o.Start || s.Earlier == 0)
	}
	if s.Earlier > 0 {
		writeHint(w, "the %d steps before are left out: `uwf thread read %s --quota %d --before %d`", s.Earlier, s.Thread, o.Quota, s.Earlier+1)
	}
	for i, st := range s.Steps {
		if i > 0 || task || s.Earlier > 0 {
			w.Printf("\n---\n\n")
		}
		st.writeMarkdown(w)
	}
	if s.Cut > 0 {
		writeHint(w, "%d more characters: `uwf step read %s:%d`", s.Cut, s.Thread, s.Steps[0].Step)
	}
}

// writeBeginning writes what the thread is, and its task: whole, or its first words.
func (s story) writeBeginning(w *output.Writer, whole bool) {
	writeHeading(w, 1, "Thread `%s`", s.Thread)
	w.Println()
	by := ""
	if s.By != nil {
		by = nameOf(s.By)
	}
	writeFacts(w, [2]string{"Workflow", fmt.Sprintf("%s (`%s`)", s.Name, s.Workflow)}, [2]string{"Status", s.Status}, [2]string{"Started by", by})
	w.Println()
	writeHeading(w, 2, "Task")
	w.Println()
	if !whole {
		more := ""
		if s.PromptCut > 0 {
			more = "…"
		}
		writeQuote(w, "", output.Line(s.Prompt, 200)+more)
		return
	}
	writeQuote(w, "", s.Prompt)
	if s.PromptCut > 0 {
		writeHint(w, "%d more characters: `uwf thread read %s --start`", s.PromptCut, s.Thread)
	}
}

// renderText is what a function writes, without colours.
func renderText(text func(*output.Writer)) string {
	var b strings.Builder
	text(output.Printer{Out: &b}.Text())
	return b.String()
}

// fitQuota is the beginning of a text that a quota allows, and how many characters
// are left; 0 is no quota.
func fitQuota(text string, quota int) (string, int) {
	if over := utf8.RuneCountInString(text) - quota; quota > 0 && over > 0 {
		return cutEnd(text, over)
	}
	return text, 0
}
