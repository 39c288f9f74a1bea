// Package ci says what a CI job is told, by its inputs and its environment, and what it
// tells: its outputs, and what people see in its log. It reads none of them itself.
package ci

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/lists"
)

// What a job can be told to do, by the input `command`.
const (
	CommandStep   = ""       // a whole step: agent, commit, effects
	CommandRun    = "run"    // only the agent: writes an artifact, and nothing else anywhere
	CommandCommit = "commit" // everything but the agent: from the artifact of a job before
	// In a job that needs the others, for when one of these died, or a person cancelled the run.
	CommandRescue  = "rescue"
	CommandStopped = "stopped"
)

// RunsAgents reports whether agents run in a job with that command: others need no key.
func RunsAgents(command string) bool { return command == CommandStep || command == CommandRun }

// Values of the input `dispatch` beside the name of a workflow file.
const (
	DispatchAuto       = "auto" // the file that this job is from
	DispatchRepository = "repository_dispatch"
	DispatchOff        = "off"
)

// DispatchType is the event type of the repository_dispatch that starts a next job.
const DispatchType = "uwf-step"

// Inputs are the action's inputs as far as the job is concerned with them. The rest
// (model, token, sandbox, …) is in the engine and the forge that it is given.
type Inputs struct {
	Command  string
	Workflow string // the name of a definition on the default branch
	Prompt   string
	Thread   gitcas.ThreadID
	Head     node.Pin // the head that the thread must have; zero: any
	Agent    string   // overrides the configured agent
	MaxSteps int      // 0: no limit of the thread's own
	// StepsPerJob is how many steps this job does at most; 0 is 1.
	StepsPerJob int
	Label       string   // the label that starts a thread; empty: uwf
	Allow       []string // who may start and steer where the forge can't tell, and bots, by exact name
	Comment     Wanted
	PullRequest Wanted
	Draft       bool
	Dispatch    string // empty: auto
	Artifact    string // the artifact's folder, for run and commit
	Needs       []Needed
	// Rescued is how many jobs before this one died without a trace, one after the other.
	Rescued int
	// Unread is the input about new threads that the job rescue lacks: the job before it has an
	// expression for it. Empty: it lacks none.
	Unread string
	// Claim is the nonce of the claim that the job which started this run made for it.
	Claim string
}

// Needed is a job that this one needed, and that is over.
type Needed struct {
	Name   string // its id in the workflow file
	Result string // success, failure, cancelled or skipped
	// Ran: it came to its end on a runner; one that died there did not.
	Ran bool
}

// HasDied reports whether the job ended as one does that failed, or was ended.
func (n Needed) HasDied() bool { return n.Result == "failure" || n.Result == "cancelled" }

// HadRunner: nobody cancels a job as failed that waits for one.
func (n Needed) HadRunner() bool { return n.Ran || n.Result == "failure" }

// ParseNeeds reads what toJSON(needs) gives in a workflow file, sorted by name. Empty: none.
func ParseNeeds(s string) ([]Needed, error) {
	if strings.TrimSpace(s) == "" {
		return nil, nil
	}
	var given map[string]struct {
		Result  string
		Outputs struct{ Ran string }
	}
	if err := json.Unmarshal([]byte(s), &given); err != nil {
		return nil, fmt.Errorf("write what toJSON(needs) gives: %w", err)
	}
	return lists.Map(slices.Sorted(maps.Keys(given)), func(name string) Needed {
		return Needed{Name: name, Result: given[name].Result, Ran: given[name].Outputs.Ran == "true"}
	}), nil
}

// Wanted is the value of the inputs `comment` and `pull-request`: whether there is to
// be one, and the id of the one that an earlier job made.
type Wanted struct {
	Off bool
	ID  int64
}

// ParseWanted reads "true", "false" or an id. Empty is true.
func ParseWanted(s string) (Wanted, error) {
	switch s = strings.ToLower(strings.TrimSpace(s)); s {
	case "", "true":
		return Wanted{}, nil
	case "false":
		return Wanted{Off: true}, nil
	}
	id, err := strconv.ParseInt(s, 10, 64)
	if err != nil || id < 0 {
		return Wanted{}, errors.New("write true, false, or the number of the one that is there")
	}
	return Wanted{ID: id}, nil
}

// String is what ParseWanted reads.
func (w Wanted) String() string {
	switch {
	case w.Off:
		return "false"
	case w.ID > 0:
		return strconv.FormatInt(w.ID, 10)
	}
	return "true"
}

// Job is what the runner's environment says of this job.
type Job struct {
	// Run is GITHUB_RUN_ID, Name GITHUB_JOB (with a matrix discriminator where there
	// is one): together they name a job over all its re-runs.
	Run     string
	Name    string
	Attempt int
	// ServerURL is GITHUB_SERVER_URL, Repository owner/name.
	ServerURL  string
	Repository string
	// WorkflowFile is the base name of the workflow file that this job is from, by
	// GITHUB_WORKFLOW_REF; empty: not known.
	WorkflowFile string
	// Actor and TriggeringActor are GITHUB_ACTOR and GITHUB_TRIGGERING_ACTOR: the
	// second is who started a re-run.
	Actor           string
	TriggeringActor string
	// Deadline is when the job's time is over; zero: not known.
	Deadline time.Time
	// PageURL is where people see the repository, as the event says; empty: below ServerURL,
	// which a runner may reach by another name than people do.
	PageURL string
	// RunPage is the run's name in the address of its page; empty: Run.
	RunPage string
	// StateBranch is the state branch's short name: no thread works on it.
	StateBranch string
	// WorkflowFiles: the token may push changes below .github/workflows. GitHub lets
	// no job's own token do that; where this is false, it is said before the push.
	WorkflowFiles bool
	// Store is the id of the store, carried to the next jobs; empty: not known yet.
	Store string
}

// IsOwnRun reports whether a run is the job's, by the name that one of its jobs has on record.
func (j Job) IsOwnRun(name string) bool { return name == j.Run || strings.HasPrefix(name, j.Run+"-") }

// RepositoryURL is the repository's address; empty where it is not known.
func (j Job) RepositoryURL() string {
	if j.PageURL != "" || j.ServerURL == "" || j.Repository == "" {
		return j.PageURL
	}
	return strings.TrimSuffix(j.ServerURL, "/") + "/" + j.Repository
}

// ResolveRunURL is where people see this run; empty where that is not known.
func (j Job) ResolveRunURL() string {
	if j.RepositoryURL() == "" || j.Run == "" {
		return ""
	}
	return j.RepositoryURL() + "/actions/runs/" + cmp.Or(j.RunPage, j.Run)
}

// Output is where the job tells people and later steps of it. Messages are plain
// text: the implementation escapes them for the runner.
type Output interface {
	Notice(msg string)
	Warning(msg string)
	Error(a Annotation)
	// Summary is the job's summary, in Markdown. Called again, it replaces.
	Summary(markdown string)
}

// Annotation is an error at a place in a file. Line and Col are from 1; 0: not known.
type Annotation struct {
	File      string
	Line, Col int
	Title     string
	Message   string
}

// AnnotationsOf are what people see of an error: what is wrong with a definition at its
// lines, else the message.
func AnnotationsOf(err error, message string) []Annotation {
	var invalid *workflow.InvalidError
	if !errors.As(err, &invalid) {
		return []Annotation{{Title: "uwf", Message: message}}
	}
	return lists.Map(invalid.Problems, func(p workflow.Problem) Annotation {
		return Annotation{File: p.File, Line: p.Line, Col: p.Col, Title: "uwf workflow", Message: strings.TrimSpace(p.Message + "\n" + p.Fix)}
	})
}

// Outcome is what the job did: the action's outputs.
type Outcome struct {
	Thread      gitcas.ThreadID
	Head        node.Hash
	Status      string // the thread's: active, running, suspended, ended, cancelled, failed
	Result      string // the step's status
	Role        string
	NextRole    string
	Step        int
	Done        bool
	PullRequest int
	// Notice is one line on why a green job did nothing, or nothing more.
	Notice string
}
