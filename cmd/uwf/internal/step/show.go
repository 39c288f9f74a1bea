package step

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// ShowOptions are what `uwf thread step-details` and `uwf step read` work with.
type ShowOptions struct {
	Open    lookup.Open
	Printer output.Printer
	Step    string
	// Turns leaves the prompt out and shows what the agent said and did.
	Turns bool
	Quota int
}

// NewCmdShow makes `uwf thread step-details`. A runF that is not nil replaces the
// run.
func NewCmdShow(f *app.Factory, runF func(context.Context, *ShowOptions) error) *cobra.Command {
	o := &ShowOptions{Open: f.Store}
	return &cobra.Command{
		Use:   "step-details STEP",
		Short: "Show one step with its agent's turns",
		Long: `Show one step whole: output, body, the attempts that failed before it, what it changed,
the prompt that the agent was given, and the details that the agent kept, such as its
turns and tool calls. STEP is THREAD:N, N from 1, or the step's hash.`,
		Example:           "  uwf thread step-details 01JY0000000000000000000000:2\n  uwf thread step-details @latest:1 --jq .prompt\n  uwf thread step-details @latest:2 --jq .patch.diff",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: lookup.CompleteStep(f),
		RunE: app.Run(o, runF, showRun, func(args []string) {
			o.Step, o.Printer = args[0], f.Printer()
		}),
	}
}

// NewCmdReadStep makes `uwf step read`. A runF that is not nil replaces the run.
func NewCmdReadStep(f *app.Factory, runF func(context.Context, *ShowOptions) error) *cobra.Command {
	o := &ShowOptions{Open: f.Store, Turns: true}
	cmd := &cobra.Command{
		Use:   "read STEP",
		Short: "Read one step: what came of it, and what its agent said",
		Long: `Read one step: its output and body, then the turns of its agent, without the prompt.
STEP is THREAD:N, N from 1, or the step's hash. As JSON it is what show prints.`,
		Example:           "  uwf step read 01JY0000000000000000000000:2\n  uwf step read @latest:1 --quota 2000",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: lookup.CompleteStep(f),
		RunE: app.Run(o, runF, showRun, func(args []string) {
			o.Step, o.Printer = args[0], f.Printer()
		}),
	}
	cmd.Flags().IntVar(&o.Quota, "quota", 0, "print about so many `CHARACTERS` of text at most; 0 is all")
	return cmd
}

// details is one step as it is printed, whole.
type details struct {
	Thread gitcas.ThreadID `json:"thread"`
	shown
	Prompt string `json:"prompt,omitempty"`
	Detail any    `json:"detail"`
	Turns  []any  `json:"turns,omitempty"`
	// Patch is what the step changed on the work branch; nothing: no file.
	Patch any `json:"patch,omitempty"`
}

func showRun(ctx context.Context, o *ShowOptions) error {
	if err := checkQuota(o.Quota); err != nil {
		return err
	}
	s, err := lookup.FindStep(ctx, o.Open, o.Step)
	if err != nil {
		return err
	}
	d, err := readDetails(ctx, s)
	if err != nil {
		return err
	}
	return o.Printer.Print(d, func(w *output.Writer) {
		if !o.Turns {
			d.text(w)
			return
		}
		d.Prompt = ""
		text := render(d.text)
		cut, left := within(text, o.Quota)
		w.Printf("%s", cut)
		if left > 0 {
			w.Faint(fmt.Sprintf("… %d more characters: uwf step read %s --quota 0", left, o.Step))
			w.Println()
		}
	})
}

func readDetails(ctx context.Context, s *lookup.Step) (details, error) {
	d := details{Thread: s.ID}
	var err error
	rec := s.Node()
	if d.shown, err = read(ctx, s.Thread, s.N, rec); err != nil {
		return d, err
	}
	below := s.View.In(ctx, gitcas.Place{Thread: s.ID, Of: rec.Hash, Detail: true})
	get := func(what string, h node.Hash) (any, error) {
		n, err := below.Get(h)
		if err != nil {
			return nil, fmt.Errorf("%s of step %d: %w", what, s.N, err)
		}
		return n.Payload, nil
	}
	if rec.AssembledPrompt != nil {
		p, err := get("prompt", *rec.AssembledPrompt)
		if err != nil {
			return d, err
		}
		d.Prompt, _ = p.(string)
	}
	if d.Detail, err = get("detail", rec.Detail); err != nil {
		return d, err
	}
	if rec.Patch != nil {
		if d.Patch, err = get("patch", *rec.Patch); err != nil {
			return d, err
		}
	}
	m, _ := d.Detail.(map[string]any)
	turns, _ := m["turns"].([]any)
	for _, t := range turns {
		h, _ := t.(string)
		turn, err := get("turn", node.Hash(h))
		if err != nil {
			return d, err
		}
		d.Turns = append(d.Turns, turn)
	}
	return d, nil
}

// text writes one step as a reader wants it.
func (s shown) text(w *output.Writer) {
	for _, f := range s.Failed {
		what := "failed"
		if f.Phase == phasePoked {
			what = "was taken back"
		}
		w.Bad(fmt.Sprintf("an attempt at step %d %s", s.Step, what))
		w.Faint(fmt.Sprintf("  %s, %s, %s", f.Role, f.Agent, f.At.Format("2006-01-02 15:04:05")))
		w.Println()
		indent(w, f.Error)
		w.Println()
	}
	for _, said := range s.Said {
		said.text(w)
	}
	w.Bold(fmt.Sprintf("step %d: %s → %s", s.Step, s.Role, s.Result))
	w.Faint(fmt.Sprintf("  %s, %s", s.Agent, s.CompletedAt.Format("2006-01-02 15:04:05")))
	w.Println()
	fields, ok := s.Output.(map[string]any)
	if !ok {
		field(w, "output", s.Output) // of another system: ours are always objects
	}
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		if k != "$status" && k != "status" {
			field(w, k, fields[k])
		}
	}
	if body := strings.TrimSpace(s.Body); body != "" {
		w.Println()
		indent(w, body)
	}
}

// text writes what somebody said, and what they were asked.
func (s spoken) text(w *output.Writer) {
	if s.Question != "" {
		w.Warn(s.Role + " asked")
		w.Println()
		indent(w, s.Question)
		w.Println()
	}
	w.Bold(nameOf(s.By) + " " + s.did)
	w.Faint("  " + s.At.Format("2006-01-02 15:04:05"))
	if s.By != nil && s.By.URL != "" {
		w.Faint(", " + s.By.URL)
	}
	w.Println()
	if strings.TrimSpace(s.Text) != "" {
		indent(w, s.Text)
	}
	w.Println()
}

// nameOf names somebody; nobody knows who where there is none.
func nameOf(by *record.By) string {
	if by == nil {
		return "somebody"
	}
	return thread.Name(*by)
}

// field writes one field of an output.
func field(w *output.Writer, name string, value any) {
	text, isText := value.(string)
	if !isText {
		b, err := node.FormatJSON(value)
		if err != nil {
			w.Fail(err)
			return
		}
		text = string(b)
	}
	if text = strings.TrimRight(text, "\n"); !strings.Contains(text, "\n") {
		w.Printf("  %s: %s\n", name, text)
		return
	}
	w.Printf("  %s:\n", name)
	for line := range strings.Lines(text + "\n") {
		w.Printf("    %s", line)
	}
}

func (d details) text(w *output.Writer) {
	d.shown.text(w)
	for i, t := range d.Turns {
		m, _ := t.(map[string]any)
		role, _ := m["role"].(string)
		content, _ := m["content"].(string)
		w.Println()
		w.Bold(fmt.Sprintf("turn %d, %s", i+1, role))
		w.Println()
		indent(w, content)
		calls, _ := m["toolCalls"].([]any)
		for _, c := range calls {
			cm, _ := c.(map[string]any)
			w.Faint(fmt.Sprintf("  %v %v", cm["name"], cm["args"]))
			w.Println()
		}
	}
	if p, _ := d.Patch.(map[string]any); p != nil {
		w.Println()
		w.Bold("what it changed")
		w.Println()
		if diff, _ := p["diff"].(string); diff != "" {
			indent(w, diff)
		} else {
			field(w, "files", p["files"]) // too much for a diff
		}
	}
	if d.Prompt != "" {
		w.Println()
		w.Bold("prompt")
		w.Println()
		indent(w, d.Prompt)
	}
}

func indent(w *output.Writer, text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n") + "\n") {
		w.Printf("  %s", line)
	}
}
