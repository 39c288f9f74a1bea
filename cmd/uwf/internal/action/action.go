// Package action is `uwf action`: what a CI job of uwf runs. It reads the inputs and
// the forge's environment, takes definitions and settings from the default branch,
// puts an engine, a forge and a runner together, and tells the job what came out. It
// decides nothing about threads: that is engine/runner's.
package action

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
)

// Options are what `uwf action` works with.
type Options struct{ Factory *app.Factory }

// NewCmdAction makes `uwf action`. A runF that is not nil replaces the run.
func NewCmdAction(f *app.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	o := &Options{Factory: f}
	return &cobra.Command{
		Use:   "action",
		Short: "Do what a CI job of uwf does: take an event, do one step, show its effects",
		Long: `Do what a CI job of uwf does: take the event that started it, do one step of one
thread, and show the effects: the comment, labels, the pull request, the next job. The
container action and the host variant run this and nothing else; uwf init writes the
workflow file that uses them.

It takes no flags. The action's inputs are read from variables: INPUT_ and the input's
name in capitals, such as INPUT_API-KEY or INPUT_API_KEY. action.yml says what each is
for. Definitions and settings come from the repository's default branch over the
network, never from the working directory.

To run it by hand, or in another CI, set:

  GITHUB_REPOSITORY    owner/name
  INPUT_TOKEN          a token for it (or GITHUB_TOKEN)
  GITHUB_ACTOR         you: who may write to it may start threads
  INPUT_PROMPT         what is to be done; or INPUT_THREAD: the thread to step

and what these should be where the default is wrong:

  GITHUB_SERVER_URL    the forge (https://github.com)
  GITHUB_API_URL       its API (https://api.github.com; else the forge's address with
                       /api/v3, with GITEA_ACTIONS=true with /api/v1)
  GITHUB_EVENT_NAME, GITHUB_EVENT_PATH   the event and the file with its payload (none)
  GITHUB_RUN_ID, GITHUB_RUN_ATTEMPT      the job; the same in each re-run, and counted
                       from 1 (a random id: then no re-run is recognised)
  GITHUB_JOB           the job's name, where a run has several
  GITHUB_WORKFLOW_REF  owner/name/.github/workflows/FILE@ref: what starts the next job
                       (else GITHUB_WORKFLOW: FILE, or the name in it; none: set
                       INPUT_DISPATCH)
  GITHUB_TRIGGERING_ACTOR  who started a re-run, where it is somebody else
  GITHUB_WORKSPACE     the folder in which what could not be pushed of a finished step is
                       left, in .uwf-pending; agents work in a temporary folder (none)
  GITHUB_OUTPUT, GITHUB_STEP_SUMMARY     files for the outputs and the summary (none)
  GITHUB_ACTIONS=true  the log is read by a runner that hides what it is told to hide
  RUNNER_TEMP          where temporary folders are made (the system's)
  UWF_HOME             settings and caches of this machine (a temporary folder)

Exit codes: 0 done, or nothing to do · 1 the step failed · 2 wrong inputs or invalid
definition · 5 store damaged or unreadable · 6 limit reached`,
		Example: `  GITHUB_REPOSITORY=owner/name GITHUB_ACTOR=you INPUT_TOKEN=… INPUT_PROMPT="Fix the typo" uwf action`,
		Args:    cobra.NoArgs,
		RunE:    app.Run(o, runF, actionRun, func([]string) {}),
	}
}
