package trust

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/engine/consent"
)

// ShowOptions are what `uwf trust show` works with.
type ShowOptions struct{ Factory *app.Factory }

// NewCmdShow makes `uwf trust show`. A runF that is not nil replaces the run.
func NewCmdShow(f *app.Factory, runF func(context.Context, *ShowOptions) error) *cobra.Command {
	o := &ShowOptions{f}
	return &cobra.Command{
		Use:   "show",
		Short: "Show what this repository wants of this machine",
		Long: `Show what this repository wants of this machine, whether you have consented to it, what
changed since you last did, and the SHA-256 that --trust takes.`,
		Example: "  uwf trust show\n  uwf trust show --jq .sha256",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, showRun, func([]string) {}),
	}
}

// shown is the result of `uwf trust show`.
type shown struct {
	Repository string           `json:"repository"`
	SHA256     string           `json:"sha256,omitempty"`
	Consented  bool             `json:"consented"`
	Demands    []consent.Demand `json:"demands"`
	// Changes are a line each: see consent.Diff.
	Changes []string `json:"changes,omitempty"`
}

func showRun(_ context.Context, o *ShowOptions) error {
	c, err := o.Factory.Config()
	if err != nil {
		return err
	}
	root := o.Factory.RepoRoot()
	if root == "" {
		return app.Usagef("%s is in no git repository: there is nothing to consent to", o.Factory.Dir)
	}
	out := shown{Repository: root, Demands: append([]consent.Demand{}, c.Demands()...), Consented: len(c.Unconsented()) == 0}
	if len(out.Demands) > 0 {
		out.SHA256 = consent.Digest(out.Demands)
	}
	if !out.Consented {
		out.Changes = app.DemandChanges(o.Factory, out.Demands)
	}
	for i := range out.Demands {
		out.Demands[i].Says = o.Factory.CleanMessage(out.Demands[i].Says)
	}
	return o.Factory.Printer().Print(out, out.writeText)
}

func (s shown) writeText(w *output.Writer) {
	switch {
	case len(s.Demands) == 0:
		w.Println("this repository wants nothing that needs your consent")
		return
	case s.Consented:
		w.Good("you have consented")
		w.Printf(" to what this repository wants of this machine:\n")
	case len(s.Changes) > 0:
		w.Warn("it changed")
		w.Println(" since you consented:")
	default:
		w.Warn("you have not consented")
		w.Printf(" to what this repository wants of this machine:\n")
	}
	lines := s.Changes
	if len(lines) == 0 {
		lines = consent.Diff(s.Demands, s.Demands)
	}
	w.Println(strings.Join(lines, "\n"))
	if !s.Consented {
		w.Printf("to consent: --trust %s, of uwf run, uwf thread start and uwf thread step\n", s.SHA256)
	}
}
