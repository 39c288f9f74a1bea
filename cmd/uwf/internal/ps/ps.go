// Package ps is `uwf ps`: which jobs work on threads now, as their claims say.
package ps

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// Options are what `uwf ps` works with.
type Options struct{ Factory *app.Factory }

// NewCmdPs makes `uwf ps`. A runF that is not nil replaces the run.
func NewCmdPs(f *app.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Factory: f}
	return &cobra.Command{
		Use:   "ps",
		Short: "List the jobs that work on threads now",
		Long: `List the jobs that work on threads now, wherever they run: each holds a claim on its
thread and renews it while its agent runs. A job that was not heard of for twenty
minutes, or for as long as it gave itself where it never was, counts as dead and is
not listed; the next one takes its thread over.`,
		Example: "  uwf ps\n  uwf ps --jq '.[].thread'",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, psRun, func([]string) {}),
	}
}

// job is one running job.
type job struct {
	Thread   gitcas.ThreadID `json:"thread"`
	Workflow node.Hash       `json:"workflow"`
	Name     string          `json:"name"`
	Role     string          `json:"role,omitempty"`
	lookup.Job
	PID int `json:"pid"`
}

func psRun(ctx context.Context, o *Options) error {
	_, v, err := lookup.Load(ctx, o.Factory.Store)
	if err != nil {
		return err
	}
	jobs, err := listRunning(ctx, v)
	if err != nil {
		return err
	}
	return o.Factory.Printer().Print(jobs, func(w *output.Writer) {
		if len(jobs) == 0 {
			w.Println("no job works on a thread")
			return
		}
		head := []string{"thread", "workflow", "role", "run", "host", "since", "renewed", "tokens"}
		output.WriteTable(w, head, jobs, func(j job) []string {
			run := fmt.Sprintf("%s.%d", j.Run, j.Attempt)
			if j.Ahead {
				run = "started by " + run
			}
			return []string{
				string(j.Thread), j.Name, j.Role, run, fmt.Sprintf("%s/%d", j.Host, j.PID),
				text.Time(j.Since), max(v.Time().Sub(j.Renewed), 0).Round(time.Second).String() + " ago", strconv.FormatInt(j.Tokens, 10),
			}
		})
	})
}

// listRunning are the jobs whose claims count, in the order of their threads' ids.
func listRunning(ctx context.Context, v *gitcas.View) ([]job, error) {
	jobs := []job{}
	for _, id := range slices.Sorted(maps.Keys(v.Claims())) {
		e, alive := v.Entry(id)
		c, counts := life.WorkingClaim(v, id, e)
		if !alive || !counts {
			continue
		}
		j := job{Thread: id, Workflow: e.Workflow, Job: lookup.JobOf(c), PID: c.PID}
		if e.Next != nil {
			j.Role = e.Next.Role
		}
		var err error
		if j.Name, err = lookup.WorkflowName(ctx, v, e.Workflow); err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}
