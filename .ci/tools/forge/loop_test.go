package forge

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	runnerv1 "code.gitea.io/actions-proto-go/runner/v1"
	"golang.org/x/tools/txtar"

	"github.com/united-workforce/uwf/examples"
)

// aSecret is the repository's secret.
const aSecret = "sk-test-0123456789abcdef"

// mockConfig makes the mock agent play the script that the repository has.
const mockConfig = `state: {remote: origin}
agents:
  player: {command: uwf, args: [agent, mock, .uwf/mock.yaml]}
defaultAgent: player
checks: {test: test -s slug/slug.go}
`

// fixed is the file that the developer writes.
const fixed = "package slug\n\n// Make is right now.\nfunc Make(title string) string { return title }\n"

// playedFiles are the files of a repository in which the mock agent plays the three roles of
// solve-issue. The developer asks so many questions before he works.
func playedFiles(questions int) map[string]string {
	var b strings.Builder
	b.WriteString("steps:\n")
	say := func(role string, visit int, write, output string) {
		fmt.Fprintf(&b, "  - {role: %s, visit: %d, %soutput: %q}\n", role, visit, write, output)
	}
	say("planner", 1, "", "---\n$status: ready\nplan: Write one dash between two words.\nfiles: [slug/slug.go]\n---\nDashes are doubled.\n")
	for visit := range questions {
		say("developer", visit+1, "", "---\n$status: blocked\nquestion: Does MaxLen count bytes?\n---\nI must know.\n")
	}
	say("developer", questions+1, fmt.Sprintf("write: {slug/slug.go: %q}, ", fixed), "---\n$status: done\nsummary: Words are joined by single dashes.\ntests: go test ./... passes\n---\nDone.\n")
	say("reviewer", 1, "", "---\n$status: approved\nsummary: Slugs have single dashes.\n---\nI ran the tests.\n")
	return map[string]string{".uwf/config.yaml": mockConfig, ".uwf/mock.yaml": b.String()}
}

// example is a file of examples.
func example(t testing.TB, name string) string {
	t.Helper()
	text, err := fs.ReadFile(examples.Files, name)
	mustDo(t, err)
	return string(text)
}

// serveAction puts the action where a workflow file finds it: Gitea is told to take
// actions from itself. It is the variant for the runner itself, as there are no
// containers here.
func (s *site) serveAction() {
	s.Helper()
	const dir = ".github/actions/host"
	files := map[string]string{}
	for _, name := range []string{"action.yml", "install.sh"} {
		text, err := os.ReadFile(filepath.Join("../../..", dir, name))
		mustDo(s, err)
		files[dir+"/"+name] = string(text)
	}
	s.addUser("united-workforce")
	r := s.addRepository("united-workforce", "uwf", false, files)
	r.call("united-workforce", http.MethodPost, r.path("tags"), map[string]string{"tag_name": "v1", "target": "main"}, nil)
}

// addDemo makes a private repository whose files uwf init has written, and a runner. What
// init is told is in flags; more are files that are put over its own.
func (s *site) addDemo(name string, flags []string, more map[string]string) *runner {
	s.Helper()
	files := map[string]string{}
	for _, f := range txtar.Parse([]byte(example(s, "demo/repo.txtar"))).Files {
		files[f.Name] = string(f.Data)
	}
	r := s.addRepository("octo", name, true, files)
	r.call("octo", http.MethodPut, r.path("actions/secrets/OPENAI_API_KEY"), map[string]string{"data": aSecret}, nil)
	dir := r.clone("octo", "main")
	r.uwf(dir, append([]string{"init", "--provider", "openai"}, flags...)...)
	files = map[string]string{}
	for _, name := range []string{".uwf/config.yaml", ".uwf/workflows/solve-issue.yaml", workflowFile} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		mustDo(s, err)
		files[name] = string(text)
	}
	if text := files[workflowFile]; !strings.Contains(text, "uses: united-workforce/uwf/.github/actions/host@v1") || !strings.Contains(text, "allow: ") {
		s.Fatalf("uwf init wrote another workflow file than expected:\n%s", text)
	}
	maps.Copy(files, more)
	r.allow("alice", "write")
	r.allow("bob", "read")
	r.commit("octo", "main", "Let uwf work on issues", files)
	r.waitUntil("the workflow file is known", func() bool {
		var list struct {
			Workflows []struct{ Path string }
		}
		r.call("octo", http.MethodGet, r.path("actions/workflows"), nil, &list)
		return len(list.Workflows) == 1
	})
	return r.addRunner()
}

const workflowFile = ".github/workflows/uwf.yml"

// uwf runs uwf in a folder.
func (r *repository) uwf(dir string, args ...string) string {
	r.Helper()
	cmd := exec.CommandContext(r.Context(), os.Getenv(envUwf), args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "UWF_TRUST_REPO=1") // it is octo's own
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.Fatalf("uwf %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// openIssue opens an issue with the text of the demo's.
func (r *repository) openIssue(login string) int {
	r.Helper()
	var made struct{ Number int }
	r.call(login, http.MethodPost, r.path("issues"), map[string]string{"title": "Slugs with punctuation look broken", "body": example(r, "demo/issue.md")}, &made)
	return made.Number
}

// putLabel puts a label on an issue, and makes it where it is missing.
func (r *repository) putLabel(login string, issue int, name string) {
	r.Helper()
	var all []struct {
		ID   int64
		Name string
	}
	r.call(login, http.MethodGet, r.path("labels"), nil, &all)
	var id int64
	for _, l := range all {
		if l.Name == name {
			id = l.ID
		}
	}
	if id == 0 {
		var made struct{ ID int64 }
		r.call("octo", http.MethodPost, r.path("labels"), map[string]string{"name": name, "color": "#ededed"}, &made)
		id = made.ID
	}
	r.call(login, http.MethodPost, r.path(fmt.Sprintf("issues/%d/labels", issue)), map[string]any{"labels": []int64{id}}, nil)
}

func (r *repository) comment(login string, issue int, body string) {
	r.Helper()
	r.call(login, http.MethodPost, r.path(fmt.Sprintf("issues/%d/comments", issue)), map[string]string{"body": body}, nil)
}

// comments are the texts under an issue, the oldest first.
func (r *repository) comments(issue int) []string {
	r.Helper()
	var list []struct{ Body string }
	r.call("octo", http.MethodGet, r.path(fmt.Sprintf("issues/%d/comments", issue)), nil, &list)
	var texts []string
	for _, c := range list {
		texts = append(texts, c.Body)
	}
	return texts
}

// sticky is uwf's one comment on an issue.
func (r *repository) sticky(issue int) string {
	r.Helper()
	found := slices.DeleteFunc(r.comments(issue), func(s string) bool { return !strings.HasPrefix(s, "<!-- uwf:thread=") })
	if len(found) != 1 {
		r.Fatalf("#%d has %d comments of a thread, want one: %q", issue, len(found), found)
	}
	return found[0]
}

func (r *repository) labels(issue int) []string {
	r.Helper()
	var list []struct{ Name string }
	r.call("octo", http.MethodGet, r.path(fmt.Sprintf("issues/%d/labels", issue)), nil, &list)
	var names []string
	for _, l := range list {
		names = append(names, l.Name)
	}
	return names
}

// pullRequest is what the test looks at.
type pullRequest struct {
	Number      int
	Title, Body string
	State       string
	User        struct{ Login string }
	Head, Base  struct{ Ref string }
}

func (r *repository) pulls() []pullRequest {
	r.Helper()
	var list []pullRequest
	r.call("octo", http.MethodGet, r.path("pulls?state=all&limit=50"), nil, &list)
	return list
}

// loop: a label on an issue becomes a pull request, one job a step, with a question in
// the middle that a comment answers.
func (s *site) loop() {
	r := s.addDemo("demo", []string{"--allow", "alice"}, playedFiles(1))
	defer r.tellOnFailure()
	n := r.openIssue("alice")

	r.after(func() { r.putLabel("alice", n, "bug") })
	r.expect("skipped", r.settle(), 1)
	r.after(func() { r.comment("alice", n, "What is this?") })
	r.expect("skipped", r.settle(), 1)
	if got := r.comments(n); len(got) != 1 {
		r.Errorf("comments: %q", got)
	}

	r.after(func() { r.putLabel("alice", n, "uwf") })
	r.expect("success", r.settle(), 2)
	asked := r.sticky(n)
	if !strings.Contains(asked, "Does MaxLen count bytes?") || !slices.Contains(r.labels(n), "uwf-waiting") {
		r.Fatalf("nobody is asked: labels %v, %s", r.labels(n), asked)
	}
	if got := r.pulls(); len(got) != 0 {
		r.Errorf("a pull request before the end: %+v", got)
	}

	// Who may only read steers nothing.
	r.after(func() { r.comment("bob", n, "/uwf resume\nNo, letters.") })
	r.expect("success", r.settle(), 1)
	if got := r.pulls(); len(got) != 0 || !slices.Contains(r.labels(n), "uwf-waiting") {
		r.Errorf("bob was obeyed: labels %v, pull requests %+v", r.labels(n), got)
	}
	r.after(func() { r.comment("alice", n, "/uwf status") })
	r.expect("success", r.settle(), 1)

	r.after(func() { r.comment("alice", n, "/uwf resume\nYes, bytes.") })
	jobs := r.settle()
	r.expect("success", jobs, 2)
	for _, want := range []string{"done=true", "status=ended", "pull-request=2"} {
		if last := jobs[len(jobs)-1]; !strings.Contains(last.log, "::set-output:: "+want+"\n") {
			r.Errorf("the last job's outputs lack %s: %s", want, last)
		}
	}
	r.checkSolved(4, n)
	r.readable()

	r.dies()

	// A second issue: started by a comment, and ended by a person. The owner of a personal
	// repository is let in without being named; bob is told, once, how he would be.
	m := r.openIssue("octo")
	for range 2 {
		r.after(func() { r.comment("bob", m, "/uwf start") })
		r.expect("success", r.settle(), 1)
	}
	if got := r.comments(m); len(got) != 3 || !strings.Contains(got[1], "name them in the input allow") {
		r.Errorf("comments: %q", got)
	}
	r.after(func() { r.comment("octo", m, "/uwf start") })
	r.expect("success", r.settle(), 2)
	if said := r.sticky(m); !strings.Contains(said, "Does MaxLen count bytes?") {
		r.Errorf("nobody is asked: %s", said)
	}
	r.after(func() { r.comment("alice", m, "/uwf cancel") })
	r.expect("success", r.settle(), 1)
	if got := r.labels(m); slices.Contains(got, "uwf-waiting") {
		r.Errorf("labels of a cancelled thread: %v", got)
	}
	if got := r.ended(); len(got) != 3 || got[2]["reason"] != "cancelled" {
		r.Errorf("ended threads: %v", got)
	}
	r.sound()
	r.keptSecrets()
}

// dies: a job dies before it can do anything. The rescue of its run starts another one, and
// the thread goes on to its question.
func (r *runner) dies() {
	r.Helper()
	n := r.openIssue("octo")
	r.after(func() { r.comment("octo", n, "/uwf start") })
	var first *runnerv1.Task
	r.waitUntil("the first job can be fetched", func() bool { first = r.fetch(); return first != nil })
	r.jobs = append(r.jobs, r.run(first))
	var second *runnerv1.Task
	r.waitUntil("the next job can be fetched", func() bool {
		second = r.fetch()
		if _, id, err := workflowOf(second); second != nil && err == nil && id == "rescue" {
			r.jobs = append(r.jobs, r.run(second)) // nothing died yet
			second = nil
		}
		return second != nil
	})
	r.finish(second, &job{result: "failure"}) // as Gitea itself does where a runner is lost
	jobs := r.settle()
	r.expect("success", jobs, 2)
	if len(jobs) == 2 && (jobs[0].id != "rescue" || jobs[1].id != "step" || !strings.Contains(r.sticky(n), "Does MaxLen count bytes?")) {
		r.Errorf("nobody went on with it: %s\n%s\n%s", jobs[0], jobs[1], r.sticky(n))
	}
	r.after(func() { r.comment("octo", n, "/uwf cancel") })
	r.expect("success", r.settle(), 1)
}

// init: what the README tells to type, on a Gitea that knows nothing of uwf, and a model
// that answers. Nothing of what uwf init wrote is edited. The owner's label becomes a pull
// request.
func (s *site) init() {
	m := s.addModel()
	r := s.addDemo("typed", []string{"--base-url", m}, nil)
	defer r.tellOnFailure()
	n := r.openIssue("alice")
	r.after(func() { r.putLabel("alice", n, "uwf") })
	r.expect("success", r.settle(), 1)
	if got := r.comments(n); len(got) != 1 || !strings.Contains(got[0], "The label uwf needs write permission") || !strings.Contains(got[0], "allow: alice") {
		r.Errorf("alice is told %q", got)
	}
	r.call("octo", http.MethodDelete, r.path(fmt.Sprintf("issues/%d/labels", n)), nil, nil)
	r.after(func() { r.putLabel("octo", n, "uwf") })
	r.expect("success", r.settle(), 3)
	r.checkSolved(3, n)
	r.sound()
	r.keptSecrets()
	s.nobodyMayStart()
}

// waiting: what happens to an issue while uwf's job about it waits for a runner takes nothing
// from that job, and an account of uwf's starts a thread as the second assignee, too.
func (s *site) waiting() {
	s.Helper()
	r := s.addDemo("waiting", []string{"--allow", "alice"}, playedFiles(1))
	defer r.tellOnFailure()
	s.addUser("uwf-bot")
	r.allow("uwf-bot", "write")
	assign := func(n int, logins ...string) {
		r.after(func() {
			r.call("alice", http.MethodPatch, r.path(fmt.Sprintf("issues/%d", n)), map[string]any{"assignees": logins}, nil)
		})
	}

	labelled, assigned := r.openIssue("alice"), r.openIssue("alice")
	r.after(func() { r.putLabel("alice", labelled, "uwf") })
	r.after(func() { r.putLabel("alice", labelled, "bug") })
	r.after(func() { r.comment("alice", labelled, "Seen here, too.") })
	assign(assigned, "alice")
	assign(assigned, "alice", "uwf-bot")
	r.settle()

	for _, n := range []int{labelled, assigned} {
		if said := r.sticky(n); !strings.Contains(said, "Does MaxLen count bytes?") {
			r.Errorf("#%d did not get to its question: %s", n, said)
		}
	}
	r.sound()
}

// nobodyMayStart: in an organisation's repository uwf doctor does not call it well that the
// workflow file names nobody.
func (s *site) nobodyMayStart() {
	s.Helper()
	s.call("octo", http.MethodPost, "orgs", map[string]string{"username": "acme"}, nil)
	s.call("octo", http.MethodPost, "orgs/acme/repos", map[string]any{"name": "shared", "private": true, "default_branch": "main"}, nil)
	r := &repository{site: s, name: "acme/shared"}
	r.begin("octo", map[string]string{"README.md": "x\n"})
	dir := r.clone("octo", "main")
	r.uwf(dir, "init", "--provider", "openai")
	doctor := func() string {
		cmd := exec.CommandContext(s.Context(), os.Getenv(envUwf), "doctor", "--read-only", "--jq", `.findings[] | select(.check == "starters") | .state + " " + .detail`)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GITHUB_SERVER_URL="+s.URL, "GITHUB_API_URL="+s.URL+"/api/v1", "GITHUB_TOKEN="+s.tokens["octo"], "GITEA_ACTIONS=true")
		out, _ := cmd.CombinedOutput() // the exit code is of all checks
		return string(out)
	}
	if said := doctor(); !strings.HasPrefix(said, "missing nobody may start or steer") || !strings.Contains(said, "acme is an organisation") {
		s.Errorf("uwf doctor says %q", said)
	}
	r.uwf(dir, "init", "--provider", "openai", "--allow", "alice", "--force")
	if said := doctor(); !strings.HasPrefix(said, "ok ") || !strings.Contains(said, "alice") {
		s.Errorf("uwf doctor says %q", said)
	}
}

var yourRole = regexp.MustCompile(`(?m)^# Your role: (\S+)$`)

// addModel serves a model that does what the roles of solve-issue ask for, and returns its
// address.
func (s *site) addModel() string {
	s.Helper()
	write, err := json.Marshal(map[string]string{"path": "slug/slug.go", "content": fixed})
	mustDo(s, err)
	outputs := map[string]string{
		"planner":   "---\n$status: ready\nplan: Write one dash between two words.\nfiles: [slug/slug.go]\n---\nDashes are doubled.\n",
		"developer": "---\n$status: done\nsummary: Words are joined by single dashes.\ntests: go test ./... passes\n---\nDone.\n",
		"reviewer":  "---\n$status: approved\nsummary: Slugs have single dashes.\n---\nI ran the tests.\n",
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		text, err := io.ReadAll(q.Body)
		if err != nil || q.Header.Get("Authorization") != "Bearer "+aSecret {
			http.Error(w, `{"error":{"message":"no"}}`, http.StatusUnauthorized)
			return
		}
		var asked struct {
			Messages []struct {
				Role    string
				Content any
			}
		}
		role, turn := "", 0
		if err := json.Unmarshal(text, &asked); err != nil {
			s.Error(err)
		}
		for _, m := range asked.Messages {
			if found := yourRole.FindStringSubmatch(fmt.Sprint(m.Content)); found != nil && role == "" {
				role = found[1]
			}
			if m.Role == "assistant" {
				turn++
			}
		}
		message, reason := map[string]any{"role": "assistant", "content": outputs[role]}, "stop"
		if role == "developer" && turn == 0 {
			call := map[string]any{"id": "call_1", "type": "function", "function": map[string]string{"name": "write_file", "arguments": string(write)}}
			message, reason = map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{call}}, "tool_calls"
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{ // who doesn't listen any more has what he wanted
			"id": "chatcmpl-1", "object": "chat.completion", "model": "m",
			"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": reason}},
			"usage":   map[string]any{"prompt_tokens": 1200, "completion_tokens": 90, "total_tokens": 1290},
		})
	}))
	s.Cleanup(server.Close)
	return server.URL + "/v1"
}

// expect checks how many jobs ran and how they ended.
func (r *runner) expect(result string, jobs []*job, n int) {
	r.Helper()
	if len(jobs) != n {
		r.Errorf("%d jobs ran, want %d", len(jobs), n)
	}
	for _, j := range jobs {
		if j.result != result {
			r.Errorf("want %s: %s", result, j)
		}
	}
}

// tellOnFailure shows what the jobs said, once the test has failed.
func (r *runner) tellOnFailure() {
	if !r.Failed() {
		return
	}
	for _, j := range r.jobs {
		r.Log(j)
	}
	if log, err := r.tryGit(r.dirOf(), "log", "--format=%h %s", "uwf-state"); err == nil {
		r.Logf("the state branch:\n%s", log)
	}
}

// keptSecrets checks that no secret is in what people can read.
func (r *runner) keptSecrets() {
	r.Helper()
	for _, j := range r.jobs {
		for _, secret := range []string{aSecret, fmt.Sprint(j.context["token"])} {
			if strings.Contains(j.log, secret) {
				r.Errorf("a secret is in the log of %s", j)
			}
		}
	}
}

// checkSolved checks threads that went all the way, one from each of these issues and no other
// one, in so many steps each.
func (r *repository) checkSolved(steps int, issues ...int) {
	r.Helper()
	all, taken, ended := r.pulls(), r.sound(), r.ended()
	if len(all) != len(issues) || len(ended) != len(issues) {
		r.Errorf("%d issues have %d pull requests: %+v\nended threads: %v", len(issues), len(all), all, ended)
	}

	for _, n := range issues {
		fixes := regexp.MustCompile(fmt.Sprintf(`(?m)^Fixes #%d\b`, n))
		found := slices.DeleteFunc(slices.Clone(all), func(p pullRequest) bool { return !fixes.MatchString(p.Body) })
		if len(found) != 1 {
			r.Errorf("#%d has these pull requests: %+v", n, found)
			continue
		}

		p := found[0]
		r.checkDelivered(n, p)
		id := strings.TrimPrefix(p.Head.Ref, "uwf/")
		if taken[id] != steps {
			r.Errorf("thread %s has %d steps, want %d", id, taken[id], steps)
		}
		if !slices.ContainsFunc(ended, func(e map[string]any) bool {
			return e["thread"] == id && e["reason"] == "ended" && e["pr"] == float64(p.Number)
		}) {
			r.Errorf("ended threads: %v; the pull request is #%d of thread %s", ended, p.Number, id)
		}
	}
}

// checkDelivered checks a pull request for an issue, and what people read under the issue.
func (r *repository) checkDelivered(issue int, p pullRequest) {
	r.Helper()
	if p.State != "open" || p.Base.Ref != "main" || !strings.HasPrefix(p.Head.Ref, "uwf/") || p.User.Login != "gitea-actions" ||
		p.Title != "Slugs have single dashes" {
		r.Errorf("pull request: %+v", p)
	}
	if got := r.git("show", p.Head.Ref+":slug/slug.go") + "\n"; got != fixed {
		r.Errorf("the pull request has %q", got)
	}
	if got := r.git("diff", "--name-only", "main..."+p.Head.Ref); got != "slug/slug.go" {
		r.Errorf("the pull request changes %q", got)
	}
	said := r.sticky(issue)
	for _, want := range []string{"planner", "developer", "reviewer", "```mermaid", fmt.Sprintf("#%d", p.Number)} {
		if !strings.Contains(said, want) {
			r.Errorf("the comment doesn't say %q:\n%s", want, said)
		}
	}
	if got := r.labels(issue); slices.Contains(got, "uwf-waiting") || slices.Contains(got, "uwf-failed") {
		r.Errorf("labels at the end: %v", got)
	}
}

// sound checks the state branch: no claim is left, nothing is damaged, nothing was
// rewritten, and no thread is active that has ended. It returns how many steps there
// are of each thread.
func (r *repository) sound() map[string]int {
	r.Helper()
	if left := r.git("for-each-ref", "--format=%(refname)", "refs/uwf/claims"); left != "" {
		r.Errorf("claims are left: %s", left)
	}
	r.git("fsck", "--strict", "--no-dangling", "--no-progress")
	r.uwf(r.clone("octo", "main"), "fsck", "--history")
	steps := map[string]int{}
	const format = "%(trailers:key=Uwf-Thread,valueonly,separator=)|%(trailers:key=Uwf-Step,valueonly,separator=)|%(trailers:key=Uwf-Result,valueonly,separator=)"
	for line := range strings.Lines(r.git("log", "--reverse", "--first-parent", "--format="+format, "uwf-state")) {
		f := strings.Split(strings.TrimSpace(line), "|")
		if slices.Contains(f, "") || f[2] == "failed" {
			continue // no step: a start, a failure, a person's word, an archive
		}
		steps[f[0]]++
		if f[1] != fmt.Sprint(steps[f[0]]) {
			r.Errorf("thread %s: step %s is the %dth", f[0], f[1], steps[f[0]])
		}
	}
	return steps
}

// ended are the lines of the state branch's history, in the order of the threads.
func (r *repository) ended() []map[string]any {
	r.Helper()
	byID := map[string]map[string]any{}
	for file := range strings.Lines(r.git("ls-tree", "-r", "--name-only", "uwf-state", "history/")) {
		if !strings.HasSuffix(strings.TrimSpace(file), ".jsonl") {
			continue
		}
		for line := range strings.Lines(r.git("show", "uwf-state:"+strings.TrimSpace(file))) {
			var one map[string]any
			mustDo(r, json.Unmarshal([]byte(line), &one))
			byID[fmt.Sprint(one["thread"])] = one
		}
	}
	var all []map[string]any
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		all = append(all, byID[id])
	}
	return all
}

// readable checks that git log alone tells what happened.
func (r *repository) readable() {
	r.Helper()
	log := r.git("log", "--reverse", "--format=%s", "uwf-state")
	at := 0
	for _, want := range []string{` · planner → ready · step 1 · [0-9A-Z]{4}$`, ` · developer → blocked · step 2 · [0-9A-Z]{4}$`,
		` · developer → done · step 3 · [0-9A-Z]{4}$`, ` · reviewer → approved · step 4 · [0-9A-Z]{4}$`} {
		loc := regexp.MustCompile("(?m)" + want).FindStringIndex(log[at:])
		if loc == nil {
			r.Errorf("git log of the state branch doesn't say %q after:\n%s\nall:\n%s", want, log[:at], log)
			return
		}
		at += loc[1]
	}
}
