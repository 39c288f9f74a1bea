package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	runnerv1 "code.gitea.io/actions-proto-go/runner/v1"
	"code.gitea.io/actions-proto-go/runner/v1/runnerv1connect"
	"connectrpc.com/connect"
	"github.com/nektos/act/pkg/common"
	"github.com/nektos/act/pkg/model"
	actrunner "github.com/nektos/act/pkg/runner"
	"github.com/sirupsen/logrus"
	"go.yaml.in/yaml/v4"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// runner is a runner of a repository. It takes jobs by Gitea's own protocol and runs
// them by the library that Gitea's act_runner is made of, on this machine: each step is
// a process. What act_runner itself adds is taken from its internal/app/run.
type runner struct {
	*repository
	client runnerv1connect.RunnerServiceClient
	forge  string // the forge's address, as jobs see it
	slots  int    // how many jobs it runs at once
	dir    string
	jobs   []*job // that have run
}

// job is a job that has run.
type job struct {
	task    *runnerv1.Task
	id      string         // in the workflow file
	context map[string]any // github
	result  string         // success, failure, skipped
	outputs map[string]string
	log     string
}

func (j *job) String() string {
	return fmt.Sprintf("run %v (%v by %v): %s\n%s", j.context["run_id"], j.context["event_name"], j.context["actor"], j.result, j.log)
}

// addRunner registers a runner for the repository.
func (r *repository) addRunner() *runner {
	r.Helper()
	owner, _, _ := strings.Cut(r.name, "/")
	var registration struct {
		Token string `json:"token"`
	}
	r.call(owner, http.MethodPost, r.path("actions/runners/registration-token"), nil, &registration)
	made := &runner{repository: r, forge: r.URL, slots: 1, dir: r.TempDir()}
	headers := map[string]string{}
	sign := connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			for name, value := range headers {
				req.Header().Set(name, value)
			}
			return next(ctx, req)
		}
	})
	made.client = runnerv1connect.NewRunnerServiceClient(http.DefaultClient, r.URL+"/api/actions", connect.WithInterceptors(sign))
	labels := []string{"ubuntu-latest"}
	res, err := made.client.Register(r.Context(), connect.NewRequest(&runnerv1.RegisterRequest{Name: "here", Token: registration.Token, Version: "test", Labels: labels}))
	mustDo(r, err)
	headers["x-runner-uuid"], headers["x-runner-token"] = res.Msg.GetRunner().GetUuid(), res.Msg.GetRunner().GetToken()
	_, err = made.client.Declare(r.Context(), connect.NewRequest(&runnerv1.DeclareRequest{Version: "test", Labels: labels}))
	mustDo(r, err)
	return made
}

// fetch takes the next job that waits; nil: there is none.
func (r *runner) fetch() *runnerv1.Task {
	r.Helper()
	res, err := r.client.FetchTask(r.Context(), connect.NewRequest(&runnerv1.FetchTaskRequest{}))
	mustDo(r, err)
	return res.Msg.GetTask()
}

// settle runs the jobs that wait, and those that they start, until no run is left, and
// returns them, but for those that had nothing to rescue.
func (r *runner) settle() []*job {
	r.Helper()
	first := len(r.jobs)

	running, ended := 0, make(chan *job, r.slots)
	r.waitUntil("all runs have ended", func() bool {
		for running < r.slots {
			task := r.fetch()
			if task == nil {
				break
			}
			running++
			go func() { ended <- r.runToEnd(task) }()
		}
		if running == 0 {
			return r.unfinished() == 0
		}
		select {
		case j := <-ended:
			running--
			r.finish(j.task, j)
			r.jobs = append(r.jobs, j)
		case <-time.After(time.Second): // another job may wait by now
		}
		return false
	})
	return slices.DeleteFunc(slices.Clone(r.jobs[first:]), func(j *job) bool { return j.id == "rescue" && j.result == "skipped" })
}

// run is a run of a workflow file.
type run struct {
	ID         int64  `json:"id"`
	Event      string `json:"event"`
	Status     string `json:"status"`
	Conclusion string `json:"conclusion"`
}

// runs are the repository's runs, the newest first.
func (r *repository) runs() []run {
	r.Helper()
	owner, _, _ := strings.Cut(r.name, "/")
	var all []run
	for page := 1; ; page++ {
		var list struct {
			Runs []run `json:"workflow_runs"`
		}
		r.call(owner, http.MethodGet, r.path(fmt.Sprintf("actions/runs?limit=50&page=%d", page)), nil, &list)
		if all = append(all, list.Runs...); len(list.Runs) < 50 {
			return all
		}
	}
}

// unfinished is how many jobs have not ended. The runs don't tell: one with a job that failed
// is said to be completed, although its other jobs have yet to begin. Of a run that was
// cancelled because another one joined its group, those stay so for ever.
func (r *repository) unfinished() int {
	r.Helper()
	cancelled := map[int64]bool{}
	for _, one := range r.runs() {
		cancelled[one.ID] = one.Conclusion == "cancelled"
	}

	count := 0
	for page := 1; ; page++ {
		var list struct {
			Jobs []struct {
				Run    int64  `json:"run_id"`
				Status string `json:"status"`
			} `json:"jobs"`
		}
		r.call("octo", http.MethodGet, r.path(fmt.Sprintf("actions/jobs?limit=50&page=%d", page)), nil, &list)
		for _, one := range list.Jobs {
			if one.Status != "completed" && (one.Status != "waiting" || !cancelled[one.Run]) {
				count++
			}
		}
		if len(list.Jobs) < 50 {
			return count
		}
	}
}

// after does something that starts a run, and waits for the run to be there.
func (r *repository) after(do func()) {
	r.Helper()
	before := len(r.runs())
	do()
	r.waitUntil("the event starts a run", func() bool { return len(r.runs()) > before })
}

// run runs a job to its end and tells the forge how it went.
func (r *runner) run(task *runnerv1.Task) *job {
	r.Helper()
	j := r.runToEnd(task)
	r.finish(task, j)
	return j
}

// runToEnd runs a job to its end. It may be called by several goroutines at once.
func (r *runner) runToEnd(task *runnerv1.Task) *job {
	j := &job{task: task, context: task.GetContext().AsMap()}
	log := &jobLog{}
	err := r.execute(task, j, log)
	j.result, j.log = log.end()
	if err != nil {
		j.log += err.Error() + "\n"
	}
	if j.result == "" {
		j.result = "failure"
	}
	return j
}

// finish sends a job's log, result and outputs.
func (r *runner) finish(task *runnerv1.Task, j *job) {
	r.Helper()
	var rows []*runnerv1.LogRow
	for line := range strings.Lines(j.log) {
		rows = append(rows, &runnerv1.LogRow{Time: timestamppb.Now(), Content: strings.TrimSuffix(line, "\n")})
	}
	_, err := r.client.UpdateLog(r.Context(), connect.NewRequest(&runnerv1.UpdateLogRequest{TaskId: task.GetId(), Rows: rows, NoMore: true}))
	mustDo(r, err)
	result := map[string]runnerv1.Result{
		"success": runnerv1.Result_RESULT_SUCCESS, "failure": runnerv1.Result_RESULT_FAILURE, "skipped": runnerv1.Result_RESULT_SKIPPED,
	}[j.result]
	now := timestamppb.Now()
	_, err = r.client.UpdateTask(r.Context(), connect.NewRequest(&runnerv1.UpdateTaskRequest{
		State:   &runnerv1.TaskState{Id: task.GetId(), Result: result, StartedAt: now, StoppedAt: now},
		Outputs: j.outputs,
	}))
	mustDo(r, err)
}

// execute runs the job of a task.
func (r *runner) execute(task *runnerv1.Task, j *job, log *jobLog) error {
	workflow, id, err := workflowOf(task)
	if err != nil {
		return err
	}
	j.id = id
	plan, err := model.CombineWorkflowPlanner(workflow).PlanJob(id)
	if err != nil {
		return fmt.Errorf("plan the job: %w", err)
	}
	preset := presetOf(task)
	event, err := json.Marshal(preset.Event)
	if err != nil {
		return fmt.Errorf("write the event: %w", err)
	}
	dir, err := os.MkdirTemp(r.dir, "job-")
	if err != nil {
		return fmt.Errorf("make the job's folder: %w", err)
	}
	workspace := filepath.Join(dir, preset.Repository)
	if err := os.MkdirAll(workspace, 0o755); err != nil {
		return fmt.Errorf("make the workspace: %w", err)
	}
	level := logrus.DebugLevel
	runtime := task.GetContext().GetFields()["gitea_runtime_token"].GetStringValue()
	made, err := actrunner.New(&actrunner.Config{
		Workdir: workspace, ActionCacheDir: filepath.Join(dir, "actions"), LogOutput: true, AutoRemove: true, NoSkipCheckout: true,
		Secrets: task.GetSecrets(), Vars: task.GetVars(), GitHubInstance: r.forge, PresetGitHubContext: preset, EventJSON: string(event),
		DefaultActionInstance: task.GetContext().GetFields()["gitea_default_actions_url"].GetStringValue(),
		PlatformPicker:        func([]string) string { return "-self-hosted" }, JobLoggerLevel: &level,
		Env: map[string]string{
			"GITEA_ACTIONS": "true", "GITEA_ACTIONS_RUNNER_VERSION": "test", "ACTIONS_RUNTIME_URL": r.forge + "/api/actions_pipeline/",
			"ACTIONS_RESULTS_URL": r.forge, "ACTIONS_RUNTIME_TOKEN": runtime,
		},
	})
	if err != nil {
		return fmt.Errorf("make a runner: %w", err)
	}
	ctx, cancel := context.WithTimeout(actrunner.WithJobLoggerFactory(r.Context(), log), deadline)
	defer cancel()
	err = made.NewPlanExecutor(plan)(common.WithLogger(ctx, log.WithJobLogger()))
	j.outputs = workflow.GetJob(id).Outputs
	return err
}

// workflowOf is the workflow of a task, which has one job, and the jobs before it,
// whose results the forge tells.
func workflowOf(task *runnerv1.Task) (*model.Workflow, string, error) {
	workflow, err := model.ReadWorkflow(bytes.NewReader(task.GetWorkflowPayload()))
	if err != nil {
		return nil, "", fmt.Errorf("read the workflow: %w", err)
	}
	ids := workflow.GetJobIDs()
	if len(ids) != 1 {
		return nil, "", fmt.Errorf("the task has %d jobs, want one", len(ids))
	}
	var needs []string
	for id, need := range task.GetNeeds() {
		needs = append(needs, id)
		result := strings.ToLower(strings.TrimPrefix(need.GetResult().String(), "RESULT_"))
		workflow.Jobs[id] = &model.Job{Outputs: need.GetOutputs(), Result: result}
	}
	slices.Sort(needs)
	var node yaml.Node
	if err := node.Encode(needs); err != nil {
		return nil, "", fmt.Errorf("name the jobs before: %w", err)
	}
	workflow.Jobs[ids[0]].RawNeeds = node
	return workflow, ids[0], nil
}

// presetOf is the context "github" of a task, as the forge sends it.
func presetOf(task *runnerv1.Task) *model.GithubContext {
	fields := task.GetContext().GetFields()
	text := func(name string) string { return fields[name].GetStringValue() }
	preset := &model.GithubContext{
		Event: fields["event"].GetStructValue().AsMap(),
		RunID: text("run_id"), RunNumber: text("run_number"), RunAttempt: text("run_attempt"), Actor: text("actor"),
		Repository: text("repository"), EventName: text("event_name"), Sha: text("sha"), Ref: text("ref"), RefName: text("ref_name"),
		RefType: text("ref_type"), HeadRef: text("head_ref"), BaseRef: text("base_ref"), Token: text("token"),
		RepositoryOwner: text("repository_owner"), RetentionDays: text("retention_days"),
	}
	for _, name := range []string{"GITHUB_TOKEN", "GITEA_TOKEN"} {
		if t := task.GetSecrets()[name]; t != "" {
			preset.Token = t
		}
	}
	return preset
}

// jobLog keeps what a job's steps say, with masks in place, and the job's result.
type jobLog struct {
	mu     sync.Mutex
	text   bytes.Buffer
	result string
}

// WithJobLogger makes the logger of a job.
func (l *jobLog) WithJobLogger() *logrus.Logger {
	return &logrus.Logger{Out: io.Discard, Formatter: l, Hooks: logrus.LevelHooks{}, Level: logrus.DebugLevel}
}

// Format keeps one line.
func (l *jobLog) Format(e *logrus.Entry) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if result, ok := e.Data["jobResult"].(string); ok {
		l.result = result
	}
	if e.Level <= logrus.InfoLevel {
		l.text.WriteString(strings.TrimRight(e.Message, "\n") + "\n")
	}
	return nil, nil
}

func (l *jobLog) end() (result, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.result, l.text.String()
}
