// Package ps is `uwf ps`: which jobs work on threads now, as their claims say.
package ps

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/reading"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// Options are what `uwf ps` works with.
type Options struct {
	Factory *app.Factory
	Watch   bool
}

// pause is how long --watch waits before it looks again.
const pause = 2 * time.Second

// NewCmdPs makes `uwf ps`. A runF that is not nil replaces the run.
func NewCmdPs(f *app.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Factory: f}
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List the jobs that work on threads now",
		Long: `List the jobs that work on threads now, wherever they run: each holds a claim on its
thread and renews it while its agent runs. A job that was not heard of for twenty
minutes, or for as long as it gave itself where it never was, counts as dead and is
not listed; the next one takes its thread over.

With --watch it looks again every two seconds until ctrl-C: in place on a terminal,
elsewhere whenever something is new.`,
		Example: "  uwf ps\n  uwf ps --jq '.[].thread'",
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, psRun, func([]string) {}),
	}
	cmd.Flags().BoolVarP(&o.Watch, "watch", "w", false, "go on looking")
	return cmd
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
	if o.Watch {
		return o.watchJobs(ctx)
	}
	_, v, err := lookup.Load(ctx, o.Factory.Store)
	if err != nil {
		return err
	}
	jobs, err := listRunning(ctx, v)
	if err != nil {
		return err
	}
	return o.printJobs(jobs, v, o.Factory.IO.Out)
}

// watchJobs prints the jobs again and again until the person has seen enough.
func (o *Options) watchJobs(ctx context.Context) error {
	f := o.Factory
	live := f.IO.OutTTY && app.Live(f)
	last := "none was looked at"
	for {
		_, v, err := lookup.Load(ctx, f.Store)
		var jobs []job
		if err == nil {
			jobs, err = listRunning(ctx, v)
		}
		var b bytes.Buffer
		if live {
			b.WriteString("\x1b[H\x1b[2J") // the whole screen anew
		}
		if now := namesOf(jobs); err == nil && (live || now != last) {
			last = now
			err = o.printJobs(jobs, v, &b)
		}
		if err == nil {
			_, err = f.IO.Out.Write(b.Bytes())
		}
		if err != nil && ctx.Err() == nil {
			return err
		}

		tick, stop := f.After(pause)
		select {
		case <-ctx.Done():
			stop()
			return nil // that is how it ends
		case <-tick:
		}
	}
}

// namesOf is what tells a list of jobs from another.
func namesOf(jobs []job) string {
	var b strings.Builder
	for _, j := range jobs {
		fmt.Fprintln(&b, j.Thread, j.Role, j.Run, j.Attempt, j.Ahead)
	}
	return b.String()
}

// printJobs prints the jobs that work now.
func (o *Options) printJobs(jobs []job, v *gitcas.View, to io.Writer) error {
	p := o.Factory.Printer()
	p.Out = to
	return p.Print(jobs, func(w *output.Writer) {
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
				text.TimeIn(j.Since, w.Zone), max(v.Time().Sub(j.Renewed), 0).Round(time.Second).String() + " ago", strconv.FormatInt(j.Tokens, 10),
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
		if j.Name, err = reading.WorkflowName(ctx, v, e.Workflow); err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	return jobs, nil
}
