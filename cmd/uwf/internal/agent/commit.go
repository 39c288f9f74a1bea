package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

// The exit codes of `uwf agent commit` besides 0.
const (
	codeRefused = 1 // the answer can't be taken, another one may be
	codeFailed  = 2 // no other answer would help
)

// When a model may read an answer that can't be taken.
const (
	extractAuto   = "auto"   // once the corrections are used up
	extractAlways = "always" // at once
	extractNever  = "never"
)

// commitOptions are the flags of `uwf agent commit`.
type commitOptions struct {
	Options
	file    string // of the answer; "-": stdin
	detail  string // file with nodes; empty: none
	usage   string // JSON; empty: none
	extract string
}

// failedError is a failure that another answer does not cure.
type failedError struct{ err error }

func (e *failedError) Error() string { return e.err.Error() }
func (e *failedError) Unwrap() error { return e.err }

// ExitCode tells it from a refused answer.
func (e *failedError) ExitCode() int { return codeFailed }

func newCommitCmd(o Options) *cobra.Command {
	c := commitOptions{Options: o, file: "-"}
	cmd := &cobra.Command{
		Use:   "commit [FILE|-]",
		Short: "Check an answer, stage its step, and print the handle",
		Long: `Check an answer, stage its step, and print the handle, which must be the last line
that the agent prints.

The answer is Markdown with the frontmatter that the prompt asks for, in FILE or on
stdin. When it does not fit, the command exits 1, and what it prints on stderr can
be given to the model as it is: let it answer again, and commit that. Any other
failure exits 2: no other answer would help. An answer that ends as one of the model's
that was cut off at its limit, or filtered, is refused, too: the gateway knows these.

An answer that is refused for the third time in a run is read by the model that is
set for this (modelOverrides.extract, models.extract, models.default, defaultModel),
if there is one; its fields are checked like any others, and the answer is kept
whole as the body. --extract always does so at once, for agents that can't be asked
again; --extract never does not.

--detail names a JSON file with a node, or a list of nodes of which the last is the
detail; it refers by their hashes to the nodes that uwf agent stage has staged.
--usage is a JSON object: {"turns", "inputTokens", "outputTokens", "costUsd"}; what
the gateway counted goes before it. Without costUsd the cost is unknown.`,
		Example: `  uwf agent commit answer.md
  printf -- '---\n$status: done\n---\nAll is well.\n' | uwf agent commit
  uwf agent commit answer.md --detail detail.json --usage '{"turns": 2, "inputTokens": 900}'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				c.file = args[0]
			}
			if !slices.Contains([]string{extractAuto, extractAlways, extractNever}, c.extract) {
				return app.Usagef("--extract %s: it is %s, %s or %s", c.extract, extractAuto, extractAlways, extractNever)
			}
			err := c.runCommit(cmd.Context())
			if code := (interface{ ExitCode() int })(nil); err != nil && !errors.As(err, &code) {
				return &failedError{err}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&c.detail, "detail", "", "`FILE` with the nodes that tell how the answer came about")
	cmd.Flags().StringVar(&c.usage, "usage", "", "what the run cost, as `JSON`")
	cmd.Flags().StringVar(&c.extract, "extract", extractAuto, "`WHEN` a model reads an answer that can't be taken: auto (the third time), always, never")
	return cmd
}

func (o commitOptions) runCommit(ctx context.Context) (err error) {
	text, err := o.readStart(o.file, agents.MaxAnswer+1) // of a longer one it is said as of others that can't be taken
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	usage, err := parseUsage(o.usage)
	if err != nil {
		return err
	}
	c, stage, err := o.openStage()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()
	detail, err := o.stageDetail(stage, o.detail)
	if err != nil {
		return err
	}
	a := agents.Answer{Text: string(text), Detail: detail, Usage: usage}
	var handle agents.Handle
	if err = agents.CheckEnding(ctx, o.Environ, o.Transport, a.Text); err == nil {
		handle, err = agents.Commit(c, stage, a)
	}
	if bad, ok := errors.AsType[*agents.AnswerError](err); ok {
		handle, err = o.extractOrCorrect(ctx, c, stage, a, bad)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(o.Stdout, handle)
	return err
}

// extractOrCorrect has a model read an answer that can't be taken, where it is time for
// that. Else the agent is told what is wrong with it.
func (o commitOptions) extractOrCorrect(ctx context.Context, c *agents.Context, stage *agents.Stage, a agents.Answer, bad *agents.AnswerError) (agents.Handle, error) {
	refused, err := stage.Refused()
	if err != nil {
		return agents.Handle{}, err
	}
	e := agents.Extractor{Context: c, Environ: o.Environ, Transport: o.Transport}
	due := o.extract == extractAlways || o.extract == extractAuto && refused > agents.MaxCorrections
	if !due || bad.Incomplete || !e.Enabled() {
		return agents.Handle{}, o.printComplaint(bad)
	}
	found, err := e.Read(ctx, a.Text)
	if err != nil {
		if err := o.printNote(err.Error()); err != nil {
			return agents.Handle{}, err
		}
		return agents.Handle{}, o.printComplaint(bad)
	}
	if err := o.printNote(fmt.Sprintf("the answer had no usable frontmatter; model %s read it", found.Model)); err != nil {
		return agents.Handle{}, err
	}
	return agents.CommitExtracted(c, stage, a, found)
}

// printComplaint prints what to tell the model, and nothing else.
func (o commitOptions) printComplaint(bad *agents.AnswerError) error {
	if _, err := fmt.Fprintln(o.Stderr, strings.TrimRight(output.Clean(bad.Complaint), "\n")); err != nil {
		return err
	}
	return &app.Exit{Code: codeRefused}
}

func (o commitOptions) printNote(text string) error {
	_, err := fmt.Fprintf(o.Stderr, "uwf: %s\n", output.Clean(text))
	return err
}

func parseUsage(text string) (record.Usage, error) {
	var said record.Reported
	if text == "" {
		return said.Usage, nil
	}
	err := node.DecodeJSON([]byte(text), &said)
	u := said.Known()
	if err != nil {
		return u, fmt.Errorf("--usage: %w", err)
	}
	if u.Turns < 0 || u.InputTokens < 0 || u.OutputTokens < 0 || u.CostUSD < 0 {
		return u, errors.New("--usage: nothing in it may be negative")
	}
	return u, nil
}
