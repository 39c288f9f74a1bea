package step

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// ShowOptions are what `uwf thread step-details` and `uwf step read` work with.
type ShowOptions struct {
	Factory *app.Factory
	Step    string
	// Read is `uwf step read`: what came of the step and its turns, without the prompt; or
	// with Prompt the prompt, without those.
	Read   bool
	Prompt bool
	Quota  int
}

// NewCmdShow makes `uwf thread step-details`. A runF that is not nil replaces the
// run.
func NewCmdShow(f *app.Factory, runF func(context.Context, *ShowOptions) error) *cobra.Command {
	o := &ShowOptions{Factory: f}
	return &cobra.Command{
		Use:   "step-details STEP",
		Short: "Show one step with its agent's turns",
		Long: `Show one step whole: output, body, the attempts that failed before it, what it changed,
what prepared its workspace, the prompt that the agent was given, and the details that the agent kept, such as its
turns and tool calls. STEP is THREAD:N, N from 1, or the step's hash.

It is YAML unless --format or --jq ask for something else. The keys of the details stand
beside the step's own; where both have one, it is the step's.`,
		Example:           "  uwf thread step-details 01JY0000000000000000000000:2\n  uwf thread step-details @latest:1 --jq .prompt\n  uwf thread step-details @latest:2 --jq .patch.diff",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: lookup.CompleteStep(f),
		RunE:              app.Run(o, runF, showRun, func(args []string) { o.Step = args[0] }),
	}
}

// NewCmdReadStep makes `uwf step read`. A runF that is not nil replaces the run.
func NewCmdReadStep(f *app.Factory, runF func(context.Context, *ShowOptions) error) *cobra.Command {
	o := &ShowOptions{Factory: f, Read: true}
	cmd := &cobra.Command{
		Use:   "read STEP",
		Short: "Read one step: what came of it, and what its agent said",
		Long: `Read one step as Markdown: its output and body, then the turns of its agent; or with
--prompt what its agent was told. STEP is THREAD:N, N from 1, or the step's hash. As JSON
it is what show prints.`,
		Example:           "  uwf step read 01JY0000000000000000000000:2\n  uwf step read @latest:1 --quota 2000\n  uwf step read @latest:1 --prompt",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: lookup.CompleteStep(f),
		RunE:              app.Run(o, runF, showRun, func(args []string) { o.Step = args[0] }),
	}
	cmd.Flags().BoolVar(&o.Prompt, "prompt", false, "read the prompt that the agent was given, and nothing that it answered")
	cmd.Flags().IntVar(&o.Quota, "quota", 0, "print about so many `CHARACTERS` of text at most; 0 is all")
	app.RefuseNegative(cmd, "quota")
	return cmd
}

// details is one step as it is printed, whole.
type details struct {
	Thread gitcas.ThreadID `json:"thread"`
	shown
	Prompt string `json:"prompt,omitempty"`
	Turns  []any  `json:"turns"`
	// Prepare is what was printed when the workspace was prepared; empty: nothing was run.
	Prepare string `json:"prepare,omitempty"`
	// Patch is what the step changed on the work branch; nothing: no file.
	Patch any `json:"patch,omitempty"`
	// Payload is that of the details where it is no object; kept are its fields where it is.
	Payload any `json:"payload,omitempty"`
	kept    map[string]any
}

// MarshalJSON implements json.Marshaler: the fields that the agent kept stand beside our
// own, but never in place of one, however the case of its letters is.
func (d details) MarshalJSON() ([]byte, error) {
	type plain details
	own, err := text.EncodeJSON(plain(d))
	if err != nil {
		return nil, err
	}
	rest, ours := maps.Clone(d.kept), ownKeys()
	maps.DeleteFunc(rest, func(key string, _ any) bool {
		return slices.ContainsFunc(ours, func(k string) bool { return strings.EqualFold(k, key) })
	})
	if len(rest) == 0 {
		return own, nil
	}
	more, err := text.EncodeJSON(rest)
	if err != nil {
		return nil, err
	}
	return slices.Concat(own[:len(own)-1], []byte(","), more[1:]), nil
}

// ownKeys are the keys of details that are ours.
func ownKeys() []string {
	var keys []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[details]()) {
		if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

func showRun(ctx context.Context, o *ShowOptions) error {
	s, err := lookup.FindStep(ctx, o.Factory.Store, o.Step)
	if err != nil {
		return err
	}
	d, err := readDetails(ctx, s)
	if err != nil {
		return err
	}
	usual := output.YAML
	if o.Read {
		usual = output.Text
	}
	return o.Factory.Printer().Or(usual).Print(d, func(w *output.Writer) {
		if o.Quota == 0 {
			o.writeMarkdown(w, d)
			return
		}
		text, left := fitQuota(renderText(func(w *output.Writer) { o.writeMarkdown(w, d) }), o.Quota)
		w.Printf("%s", text)
		if left > 0 {
			w.Println()
			writeHint(w, "%d more characters: `uwf step read %s --quota 0`", left, o.Step)
		}
	})
}

// writeMarkdown writes what was asked for of a step.
func (o *ShowOptions) writeMarkdown(w *output.Writer, d details) {
	if o.Prompt {
		d.writeHead(w)
	} else {
		d.writeMarkdown(w)
	}
	if o.Prompt || !o.Read {
		w.Println()
		d.writePrompt(w)
	}
}

func readDetails(ctx context.Context, s *lookup.Step) (details, error) {
	d := details{Thread: s.ID}
	results, err := s.Results(ctx)
	if err != nil {
		return d, err
	}
	rec := s.Node()
	if d.shown, err = readStep(ctx, s.Thread, s.N, rec, results[s.N-1]); err != nil {
		return d, err
	}
	below := s.View.In(ctx, gitcas.Place{Thread: s.ID, Of: rec.Hash, Detail: true})
	read := func(what string, h *node.Hash) any {
		if h == nil || err != nil {
			return nil
		}
		n, nerr := below.Get(*h)
		if nerr != nil {
			err = fmt.Errorf("%s of step %d: %w", what, s.N, nerr)
		}
		return n.Payload
	}
	d.Prompt, _ = read("prompt", rec.AssembledPrompt).(string)
	d.Prepare, _ = read("prepare", rec.Prepare).(string)
	d.Patch = read("patch", rec.Patch)
	detail := read("detail", &rec.Detail)
	if err != nil {
		return d, err
	}
	var isObject bool
	if d.kept, isObject = detail.(map[string]any); !isObject {
		d.Payload = detail
	}
	turns, _ := d.kept["turns"].([]any)
	d.Turns = make([]any, len(turns))
	for i, t := range turns {
		d.Turns[i] = t // one that is no node stands there itself
		h, _ := t.(string)
		switch turn, err := below.Get(node.Hash(h)); {
		case err == nil:
			d.Turns[i] = turn.Payload
		case !errors.Is(err, node.ErrNotFound):
			return d, fmt.Errorf("turn of step %d: %w", s.N, err)
		}
	}
	return d, nil
}
