package action

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/ci"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"gopkg.in/yaml.v3"
)

// environment is what the forge's runner says of this job, in GITHUB_… variables.
// Gitea's runner and act set the same ones.
type environment struct {
	ci.Job
	Event, EventPath string // name and payload file; both may be empty
	APIURL           string
	Flavour          forge.Flavour
	Workspace        string // the job's folder; may be empty
	// WorkflowName is what the workflow file calls itself, where nothing names the file.
	WorkflowName string
}

// readEnvironment reads the variables. What a job that nobody's runner started may
// leave out has a default; see the help.
func readEnvironment(getenv func(string) string) (environment, error) {
	e := environment{
		Event: getenv("GITHUB_EVENT_NAME"), EventPath: getenv("GITHUB_EVENT_PATH"), Workspace: getenv("GITHUB_WORKSPACE"),
	}
	e.ServerURL = strings.TrimRight(cmp.Or(getenv("GITHUB_SERVER_URL"), "https://github.com"), "/")
	e.Repository = getenv("GITHUB_REPOSITORY")
	e.APIURL = cmp.Or(getenv("GITHUB_API_URL"), apiOf(e.ServerURL, getenv("GITEA_ACTIONS") == "true"))
	e.Flavour = forge.Detect(e.APIURL, getenv("GITEA_ACTIONS"))
	e.Actor, e.TriggeringActor = getenv("GITHUB_ACTOR"), getenv("GITHUB_TRIGGERING_ACTOR")
	if ref := getenv("GITHUB_WORKFLOW_REF"); ref != "" {
		e.WorkflowFile = workflowFile(ref, e.Repository)
	} else {
		e.WorkflowFile, e.WorkflowName = parseWorkflowName(getenv("GITHUB_WORKFLOW"))
	}
	if n := getenv("GITHUB_RUN_NUMBER"); n != "" && getenv("FORGEJO_ACTIONS") == "true" {
		e.RunPage = url.PathEscape(n) // it counts a repository's runs
	}
	e.Run, e.Name, e.Attempt = getenv("GITHUB_RUN_ID"), getenv("GITHUB_JOB"), 1
	if !repositoryName.MatchString(e.Repository) {
		return e, app.Usagef("GITHUB_REPOSITORY is %.80q: owner/name is expected; a CI job has it, elsewhere set it (uwf action --help)", e.Repository)
	}
	if !isPageURL(e.ServerURL) {
		return e, app.Usagef("GITHUB_SERVER_URL is no address of a forge: write it as https://github.com")
	}
	if v := getenv("GITHUB_RUN_ATTEMPT"); v != "" {
		n, err := strconv.Atoi(v)
		if err != nil || n < 1 {
			return e, app.Usagef("GITHUB_RUN_ATTEMPT is %.40q: a number from 1 is expected", v)
		}
		e.Attempt = n
	}
	return e, nil
}

// isPageURL reports an address that a browser opens, without a login in it.
func isPageURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil
}

var repositoryName = lazyregexp.New(`^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$`)

// apiOf is where the API of a server usually is.
func apiOf(server string, gitea bool) string {
	switch {
	case gitea:
		return server + "/api/v1"
	case server == "https://github.com":
		return "https://api.github.com"
	}
	return server + "/api/v3"
}

// workflowFile is the base name of the file in owner/repo/.github/workflows/x.yml@ref;
// empty where the reference is of another repository.
func workflowFile(ref, repository string) string {
	file, _, _ := strings.Cut(ref, "@")
	rest, ok := strings.CutPrefix(file, repository+"/")
	if base := path.Base(rest); ok && strings.Contains(rest, "/workflows/") && isPath(base) {
		return base
	}
	return ""
}

// parseWorkflowName is what GITHUB_WORKFLOW names where there is no reference, as on Gitea: the
// workflow's file where it ends like one, else the name that the file gives itself.
func parseWorkflowName(said string) (file, name string) {
	if base := path.Base(said); isWorkflowFile(base) && isPath(base) {
		return base, ""
	}
	return "", said
}

// isWorkflowFile reports whether forges read a file with that name.
func isWorkflowFile(base string) bool {
	return strings.HasSuffix(base, ".yml") || strings.HasSuffix(base, ".yaml")
}

// remoteURL is the URL of the repository as git reaches it.
func (e environment) remoteURL() string { return e.ServerURL + "/" + e.Repository + ".git" }

// useName tells this use of the action from the others of one run: those of other jobs,
// of other jobs of a matrix, and of other steps of the same job. They share the run's
// id, and no variable names a matrix job; but they differ in what they are to do. It
// is the same in every re-run.
func (e environment) useName(getenv func(string) string, ask Ask) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q", getenv("GITHUB_ACTION"))
	for _, input := range []string{"command", "workflow", "prompt", "thread", "agent", "model", "provider", "base-url", "label", "config", "artifact"} {
		fmt.Fprintf(h, "%q", ask(input))
	}
	word := strings.Trim(notWord.ReplaceAllString(e.Name, "-"), "-")
	return fmt.Sprintf("%.40s-%s", cmp.Or(word, "job"), hex.EncodeToString(h.Sum(nil))[:6])
}

var notWord = lazyregexp.New(`[^0-9A-Za-z]+`)

// calledTime is what a job of a workflow that is called may take, as the one does that we ship:
// only that file says it.
const calledTime = time.Hour

// hostedTime is what a job may take where its workflow doesn't say.
const hostedTime = 6 * time.Hour

// jobTime is how long the forge lets a job run, by its workflow file.
func jobTime(file []byte, job string) time.Duration {
	var flow struct {
		Jobs map[string]struct {
			Minutes yaml.Node `yaml:"timeout-minutes"`
			Uses    string    `yaml:"uses"`
		} `yaml:"jobs"`
	}
	if yaml.Unmarshal(file, &flow) != nil {
		return hostedTime // the forge has read it, so this is our own mistake
	}
	if _, ok := flow.Jobs[job]; !ok {
		for _, j := range flow.Jobs {
			if j.Uses != "" {
				return calledTime
			}
		}
	}
	var minutes float64
	if m := flow.Jobs[job].Minutes; m.Decode(&minutes) != nil || minutes <= 0 || minutes > 1e6 {
		return hostedTime // none, or an expression
	}
	return time.Duration(minutes * float64(time.Minute))
}

// jobDeadline is when a job should be over that began a while before now: a tenth of its
// time is left for what came before this step and comes after it.
func jobDeadline(now time.Time, all time.Duration) time.Time { return now.Add(all - all/10) }
