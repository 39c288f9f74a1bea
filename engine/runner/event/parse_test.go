package event

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// example is one payload of the npm package @octokit/webhooks-examples.
type example struct {
	From, Event string
	Payload     json.RawMessage
}

func examples(t testing.TB) []example {
	t.Helper()
	f, err := os.Open("testdata/webhooks-examples.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var out []example
	for s := bufio.NewReader(z); ; {
		line, err := s.ReadBytes('\n')
		if err != nil {
			return out
		}
		var x example
		if err := json.Unmarshal(line, &x); err != nil {
			t.Fatal(err)
		}
		out = append(out, x)
	}
}

// TestExamples reads what GitHub really sent.
func TestExamples(t *testing.T) {
	all := examples(t)
	if len(all) < 150 {
		t.Fatalf("only %d examples", len(all))
	}
	want := map[string]Kind{
		"issues labeled": Labeled, "issues assigned": Assigned, "issues unlabeled": None, "issues unassigned": None,
		"issues deleted": None, "issues transferred": None,
		"pull_request labeled": Labeled, "pull_request assigned": Assigned, "pull_request unlabeled": None, "pull_request unassigned": None,
		"issue_comment created": None, "issue_comment edited": None, "issue_comment deleted": None,
		"pull_request_review_comment created": None, "pull_request_review_comment edited": None, "pull_request_review_comment deleted": None,
		"workflow_dispatch": Manual, "repository_dispatch on-demand-test": Dispatch,
	}
	met := map[Kind]int{}
	for _, x := range all {
		e, err := Parse(x.Event, x.Payload)
		if err != nil {
			t.Errorf("%s %s: %v", x.From, x.Event, err)
			continue
		}
		kind, ok := want[strings.TrimSpace(x.Event+" "+e.Action)]
		if !ok {
			kind = Plain
		}
		if e.Kind != kind {
			t.Errorf("%s %s %s: %s, want %s", x.From, x.Event, e.Action, e.Kind, kind)
		}
		if (e.Why != "") != (kind == None || kind == Plain) || strings.Contains(e.Why, "\n") {
			t.Errorf("%s %s: why: %q", x.Event, e.Action, e.Why)
		}
		met[e.Kind]++
		checkExample(t, e)
		checkAccounts(t, e, x.Payload)
	}
	for _, k := range []Kind{Labeled, Assigned, None, Plain, Manual, Dispatch} {
		if met[k] == 0 {
			t.Errorf("no example is %s", k)
		}
	}
}

func checkExample(t *testing.T, e Event) {
	t.Helper()
	switch e.Kind {
	case Labeled:
		if len(e.Added) != 1 || !slices.Contains(e.Subject.Labels, e.Added[0]) {
			t.Errorf("%s: added %q, has %q", e.Name, e.Added, e.Subject.Labels)
		}
	case Assigned:
		if e.Assignee == "" {
			t.Errorf("%s: nobody was assigned", e.Name)
		}
	}
	switch e.Name {
	case "issues", "issue_comment", "pull_request":
		s := e.Subject
		if s == nil || s.Number == 0 || s.Title == "" || s.Author == "" || s.URL == "" || e.Repo.FullName == "" || e.Repo.DefaultBranch == "" || e.Sender.Login == "" {
			t.Errorf("%s %s: %+v %+v", e.Name, e.Action, s, e.Repo)
		}
		if e.Name == "pull_request" && (!s.Pull) {
			t.Errorf("pull request %+v", s)
		}
	}
}

// checkAccounts compares the ids of users with those of the payload, each of which has
// some.
func checkAccounts(t *testing.T, e Event, payload []byte) {
	t.Helper()
	type account struct {
		ID   int64
		Type string
	}
	type written struct{ User account }
	var p struct {
		Repository     struct{ Owner account }
		Sender         account
		Issue, Comment written
		Pull           written `json:"pull_request"`
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		t.Fatal(err)
	}
	if o := p.Repository.Owner; e.Repo.Owner.ID != o.ID || e.Repo.Organisation != (o.Type == "Organization") {
		t.Errorf("%s %s: owner %+v, want %+v", e.Name, e.Action, e.Repo, o)
	}
	if e.Sender.ID != p.Sender.ID || (e.Sender.ID > 0) != (e.Sender.Login != "") {
		t.Errorf("%s %s: sender %+v, want %d", e.Name, e.Action, e.Sender, p.Sender.ID)
	}
	if e.Subject != nil {
		want := max(p.Issue.User.ID, p.Pull.User.ID) // one of them is there
		if e.Subject.AuthorID != want || want == 0 {
			t.Errorf("%s %s: author %d, want %d", e.Name, e.Action, e.Subject.AuthorID, want)
		}
	}
	if e.CommentID > 0 && (e.CommentAuthor.ID != p.Comment.User.ID || e.CommentAuthor.ID == 0) {
		t.Errorf("%s %s: comment of %+v, want %d", e.Name, e.Action, e.CommentAuthor, p.Comment.User.ID)
	}
	if e.Review != (e.Name == "pull_request_review_comment") {
		t.Errorf("%s %s: review %v", e.Name, e.Action, e.Review)
	}
}

// TestComments puts commands into GitHub's own comment payloads.
func TestComments(t *testing.T) {
	pulls := 0
	for _, x := range examples(t) {
		if x.Event != "issue_comment" && x.Event != "pull_request_review_comment" {
			continue
		}
		var p map[string]any
		if err := json.Unmarshal(x.Payload, &p); err != nil {
			t.Fatal(err)
		}
		p["comment"].(map[string]any)["body"] = "yes\r\n\r\n/uwf resume take the second\r\nplease"
		raw, _ := json.Marshal(p)
		e, err := Parse(x.Event, raw)
		if err != nil {
			t.Fatal(err)
		}
		if e.Action != "created" {
			if e.Kind != None {
				t.Errorf("%s: %s", e.Action, e.Kind)
			}
			continue
		}
		c := e.Command
		if e.Kind != Comment || c == nil || c.Verb != "resume" || c.Text != "take the second\nplease" || e.CommentID == 0 || e.CommentAuthor.Login == "" || e.CommentAuthor.ID == 0 || e.CommentURL == "" {
			t.Errorf("%+v, command %+v", e, c)
		}
		if e.Review != (x.Event == "pull_request_review_comment") {
			t.Errorf("%s: review %v", x.Event, e.Review)
		}
		if e.Subject.Pull {
			pulls++
		}
	}
	if pulls == 0 {
		t.Error("no comment on a pull request")
	}
}

// What uwf writes is no command, also where a person's token wrote it.
func TestOwnComments(t *testing.T) {
	for body, want := range map[string]Kind{
		"<!-- uwf:thread=01JY0000000000000000000000 -->\n/uwf resume": None, "<!-- uwf:reply=3 -->\n/uwf cancel": None, "<!-- uwf:note -->\n/uwf x": None,
		"<!-- note -->\n/uwf resume": Comment,
	} {
		raw, _ := json.Marshal(body)
		e, err := Parse("issue_comment", []byte(`{"action":"created","comment":{"id":5,"body":`+string(raw)+`,"user":{"login":"ann"}},`+giteaIssue[len(`"number":7,`):]+","+giteaRest+"}"))
		if err != nil || e.Kind != want {
			t.Errorf("%q: %s, %v", body, e.Kind, err)
		}
	}
}

const (
	giteaIssue = `"number":7,"issue":{"id":3,"url":"http://g/api/v1/repos/o/r/issues/7","html_url":"http://g/o/r/issues/7","number":7,
		"user":{"id":1,"login":"ann","username":"ann"},"title":"T","body":"B","labels":[{"id":1,"name":"old"},{"id":2,"name":"uwf"}],
		"assignees":[{"login":"bob"},{"login":"uwf-bot"}],"assignee":{"login":"bob"},"state":"open","pull_request":null,
		"repository":{"id":1,"name":"r","owner":"o","full_name":"o/r"}}`
	giteaRest = `"repository":{"full_name":"o/r","default_branch":"trunk","private":true,"html_url":"http://g/o/r","owner":{"login":"o"}},
		"sender":{"id":2,"login":"bob"},"commit_id":""`
	giteaPull = `"pull_request":{"number":8,"user":{"id":4,"login":"eve"},"title":"P","body":"","labels":[{"name":"uwf"}],"state":"open","html_url":"http://g/o/r/pulls/8",
		"head":{"label":"main","ref":"patch","sha":"1111111111111111111111111111111111111111","repo":{"full_name":"eve/r"}},
		"base":{"ref":"trunk","sha":"2222222222222222222222222222222222222222","repo":{"full_name":"o/r"}}}`
)

// TestGitea reads payloads as Gitea's modules/structs/hook.go lays them out.
func TestGitea(t *testing.T) {
	for _, c := range []struct {
		name, event, payload string
		kind                 Kind
		check                func(e Event) bool
	}{
		{"our label among others", "issues", `{"action":"label_updated",` + giteaIssue + `,"changes":{"added_labels":[{"id":9,"name":"bug"},{"id":2,"name":"uwf"}],"removed_labels":[]},` + giteaRest + `}`, Labeled,
			func(e Event) bool {
				return slices.Equal(e.Added, []string{"bug", "uwf"}) && e.Subject.Number == 7 && !e.Subject.Pull && e.Repo.DefaultBranch == "trunk" &&
					e.Subject.Author == "ann" && e.Subject.AuthorID == 1 && e.Sender == User{Login: "bob", ID: 2}
			}},
		{"by the owner", "issues", `{"action":"label_updated","issue":{"number":7,"comments":0},"changes":{"added_labels":[{"name":"uwf"}]},"repository":{"full_name":"bob/r","owner":{"id":2,"login":"bob"}},"sender":{"id":2,"login":"bob"}}`, Labeled,
			func(e Event) bool {
				return e.Repo.Owner == User{Login: "bob", ID: 2} && e.Repo.Owner == e.Sender && !e.Repo.Organisation && e.Subject.Quiet
			}},
		{"an owner without an id", "issues", `{"action":"label_updated","issue":{"number":7,"comments":2},"changes":{"added_labels":[{"name":"uwf"}]},"repository":{"full_name":"bob/r","owner":{"login":"bob"}}}`, Labeled,
			func(e Event) bool { return e.Repo.Owner == User{Login: "bob"} && !e.Subject.Quiet }},
		{"only taken off", "issues", `{"action":"label_updated",` + giteaIssue + `,"changes":{"added_labels":null,"removed_labels":[{"name":"bug"}]},` + giteaRest + `}`, None, nil},
		{"cleared", "issues", `{"action":"label_cleared",` + giteaIssue + `,` + giteaRest + `}`, None, nil},
		{"an old version", "issues", `{"action":"label_updated",` + giteaIssue + `,` + giteaRest + `}`, None,
			func(e Event) bool { return strings.Contains(e.Why, "1.24") }},
		{"assigned", "issues", `{"action":"assigned",` + giteaIssue + `,` + giteaRest + `}`, Assigned,
			func(e Event) bool { return e.Assignee == "uwf-bot" }},
		{"a fork's pull request", "pull_request", `{"action":"label_updated","number":8,` + giteaPull + `,"changes":{"added_labels":[{"name":"uwf"}],"removed_labels":null},` + giteaRest + `}`, Labeled,
			func(e Event) bool {
				return e.Subject.Pull &&
					e.Subject.Author == "eve" && e.Subject.AuthorID == 4 && !e.Review
			}},
		{"a comment on a pull request", "issue_comment", `{"action":"created",` + giteaIssue + `,"comment":{"id":5,"html_url":"http://g/c","body":"/uwf retry","user":{"id":-2,"login":"gitea-actions"}},"is_pull":true,` + giteaRest + `}`, Comment,
			func(e Event) bool {
				return e.Subject.Pull && !e.Review && e.CommentAuthor == User{Login: "gitea-actions", Bot: true} && e.Command.Verb == "retry"
			}},
		{"by a job, on an issue whose author is gone", "issues", `{"action":"label_updated","issue":{"number":7,"user":{"id":-1,"login":"Ghost"}},"changes":{"added_labels":[{"name":"uwf"}]},"sender":{"id":-2,"login":"gitea-actions"}}`, Labeled,
			func(e Event) bool {
				return e.Sender == User{Login: "gitea-actions", Bot: true} && e.Subject.Author == "Ghost" && e.Subject.AuthorID == 0
			}},
		{"ids that are not told", "issue_comment", `{"action":"created","issue":{"number":7,"user":{"id":null,"login":"ann"}},"comment":{"id":5,"body":"/uwf retry","user":{"login":"bob"}},"sender":null}`, Comment,
			func(e Event) bool {
				return e.Sender == User{} && e.CommentAuthor == User{Login: "bob"} && e.Subject.AuthorID == 0
			}},
		{"schedule", "schedule", `{"schedule":"@daily"}`, Schedule, nil},
		{"manual, no inputs", "workflow_dispatch", `{"inputs":null,"workflow":"uwf.yml","ref":"refs/heads/main",` + giteaRest + `}`, Manual, nil},
	} {
		e, err := Parse(c.event, []byte(c.payload))
		if err != nil || e.Kind != c.kind || c.check != nil && !c.check(e) {
			t.Errorf("%s: %+v, subject %+v: %v", c.name, e, e.Subject, err)
		}
	}
}

func TestInputs(t *testing.T) {
	e, err := Parse("workflow_dispatch", []byte(`{"inputs":{"thread":"01J","draft":true,"n":7,"none":null,"cost":1.5,"much":123456789.5}}`))
	if err != nil || e.Inputs["thread"] != "01J" || e.Inputs["draft"] != "true" || e.Inputs["n"] != "7" || e.Inputs["cost"] != "1.5" || e.Inputs["much"] != "123456789.5" || len(e.Inputs) != 6 {
		t.Errorf("%v %v", e.Inputs, err)
	}
	e, err = Parse("repository_dispatch", []byte(`{"action":"uwf","client_payload":{"thread":"01J","more":{"a":1},"list":[1]}}`))
	if err != nil || e.Action != "uwf" || len(e.Inputs) != 1 || e.Inputs["thread"] != "01J" {
		t.Errorf("%+v %v", e, err)
	}
	for _, empty := range []string{"", "  ", "{}", "\ufeff{}"} {
		if e, err := Parse("push", []byte(empty)); err != nil || e.Kind != Plain {
			t.Errorf("%q: %v %v", empty, e.Kind, err)
		}
	}
}

// TestHostile: what no forge writes is an error that names the field.
func TestHostile(t *testing.T) {
	issue := func(fields string) string {
		return `{"action":"labeled","label":{"name":"uwf"},"issue":{"number":1` + fields + `}}`
	}
	for _, c := range []struct{ event, payload, field string }{
		{"issues", `{"action":"labeled","label":{"name":"x"}}`, "issue.number"},
		{"issues", `{"action":"labeled","label":{"name":"x"},"issue":null}`, "issue.number"},
		{"issues", `{"action":"labeled","label":null,"issue":{"number":1}}`, "label"},
		{"issues", `{"action":"labeled","label":{"name":""},"issue":{"number":1}}`, "label.name"},
		{"issues", `{"action":["labeled"],"issue":{"number":1}}`, "action"},
		{"issues", issue(`,"title":7`), "issue.title"},
		{"issues", issue(`,"body":{"a":"b"}`), "issue.body"},
		{"issues", issue(`,"body":"` + strings.Repeat("x", maxText+1) + `"`), "issue.body"},
		{"issues", issue(`,"user":"ann"`), "issue.user"},
		{"issues", issue(`,"user":{"login":1}`), "issue.user.login"},
		{"issues", issue(`,"user":{"id":0}`), "issue.user.id"},
		{"issues", issue(`,"user":{"id":"1"}`), "issue.user.id"},
		{"issues", issue(`,"user":{"id":1.5}`), "issue.user.id"},
		{"issues", issue(`,"user":{"id":1e300}`), "issue.user.id"},
		{"issues", issue(`,"labels":{"name":"x"}`), "issue.labels"},
		{"issues", issue(`,"labels":[{"name":"a"},"b"]`), "issue.labels[1]"},
		{"issues", issue(`,"labels":[{"name":"a"},{"name":null},{"name":[]}]`), "issue.labels[2].name"},
		{"issues", issue(`,"labels":[` + strings.Repeat(`{},`, maxLabels) + `{}]`), "issue.labels"},
		{"issues", issue(`,"title":"a","title":"b"`), ""},
		{"issues", issue(`,"title":"` + "a\xffb" + `"`), ""},
		{"issues", `{"action":"x","issue":{"number":-1}}`, "issue.number"},
		{"issues", `{"action":"x","issue":{"number":1.5}}`, "issue.number"},
		{"issues", `{"action":"x","issue":{"number":1e400}}`, ""},
		{"issues", `{"action":"x","issue":{"number":"1"}}`, "issue.number"},
		{"issues", `{"action":"x","issue":{"number":99999999999999999999}}`, "issue.number"},
		{"issues", `{"action":"x","issue":{"number":4294967296}}`, "issue.number"},
		{"issues", `{"action":"label_updated","issue":{"number":1},"changes":{"added_labels":[1]}}`, "changes.added_labels[0]"},
		{"issues", `{"action":"x","issue":{"number":1},"sender":[]}`, "sender"},
		{"issues", `{"action":"x","issue":{"number":1},"sender":{"id":true}}`, "sender.id"},
		{"push", `{"sender":{"login":"ann","id":99999999999999999999}}`, "sender.id"},
		{"push", `{"sender":{"login":"ann","id":-99999999999999999999}}`, "sender.id"},
		{"issues", `{"action":"x","issue":{"number":1},"repository":{"full_name":["o/r"]}}`, "repository.full_name"},
		{"pull_request", `{"action":"labeled","label":{"name":"x"},"pull_request":{"number":1,"html_url":7}}`, "pull_request.html_url"},
		{"pull_request_target", `{"action":"labeled","label":{"name":"x"},"pull_request":{"number":1,"state":{}}}`, "pull_request.state"},
		{"issue_comment", `{"action":"created","is_pull":"yes","issue":{"number":1},"comment":{"id":1}}`, "is_pull"},
		{"issue_comment", `{"action":"created","issue":{"number":1},"comment":{"id":1,"body":3}}`, "comment.body"},
		{"issue_comment", `{"action":"created","issue":{"number":1},"comment":{"id":1,"user":{"id":{}}}}`, "comment.user.id"},
		{"pull_request_review_comment", `{"action":"created","pull_request":{"number":1,"user":{"id":[1]}},"comment":{"id":1}}`, "pull_request.user.id"},
		{"issue_comment", `{"action":"created","issue":{"number":1}}`, "comment.id"},
		{"workflow_dispatch", `{"inputs":{"a":{"b":1}}}`, "inputs.a"},
		{"workflow_dispatch", `{"inputs":{"a":"` + strings.Repeat("x", maxText) + `"}}`, "inputs"},
		{"workflow_dispatch", `{"inputs":[]}`, "inputs"},
		{"repository_dispatch", `{"client_payload":"x"}`, "client_payload"},
		{"push", `[]`, ""}, {"push", `{}{}`, ""}, {"push", `{"a":`, ""}, {"push", `nul`, ""}, {"push", "{\"\xff\":1}", ""},
		{"push", strings.Repeat(`{"a":`, 5000) + `1` + strings.Repeat(`}`, 5000), ""},
		{"push", "{" + strings.Repeat(" ", 32<<20), ""},
	} {
		e, err := Parse(c.event, []byte(c.payload))
		var bad *PayloadError
		if !errors.As(err, &bad) {
			t.Errorf("%s %.80s: %+v %v", c.event, c.payload, e, err)
			continue
		}
		if bad.Event != c.event || !strings.HasPrefix(bad.Field, strings.TrimSuffix(c.field, "…")) || c.field == "" && bad.Field != "" {
			t.Errorf("%s %.80s: field %q, want %q: %v", c.event, c.payload, bad.Field, c.field, err)
		}
		if len(err.Error()) > 500 {
			t.Errorf("a message of %d bytes", len(err.Error()))
		}
	}
}

// TestBadCommand: the event says where to answer.
// The first mistake of a payload is named, where it is and what it is, not one that
// follows from it.
func TestFirstMistake(t *testing.T) {
	for payload, want := range map[string]string{
		`{"action":"labeled","issue":{"number":1}}`:                   "the field label of the payload is missing",
		`{"action":"x","issue":{}}`:                                   "the field issue.number of the payload is missing",
		`{"action":"x","issue":{"number":"1"}}`:                       "the field issue.number of the payload is no whole number above 0",
		`{"action":"x","issue":{"number":99999999999999999999}}`:      "the field issue.number of the payload is no whole number above 0",
		`{"action":"labeled","issue":{"number":0,"user":{"id":"4"}}}`: "the field issue.user.id of the payload is no whole number above 0",
		`{"issue":{x}}`:           "the payload can't be read: read JSON: line 1, column 11: ",
		`{"issue":{"a":1,"a":2}}`: "the payload can't be read: read JSON: line 1, column 17: ",
		`[]`:                      "the payload is no JSON object",
	} {
		_, err := Parse("issues", []byte(payload))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", payload, err, want)
		}
	}
}

func TestBadCommand(t *testing.T) {
	e, err := Parse("issue_comment", []byte(`{"action":"created","issue":{"number":4,"pull_request":{}},"comment":{"id":9,"body":"/uwf resum","user":{"login":"ann"}}}`))
	var cmd *CommandError
	if !errors.As(err, &cmd) || e.Kind != Comment || e.Subject.Number != 4 || !e.Subject.Pull || e.CommentAuthor.Login != "ann" {
		t.Errorf("%+v %v", e, err)
	}
}

func FuzzParse(f *testing.F) {
	names := []string{"issues", "issue_comment", "pull_request", "pull_request_target", "pull_request_review_comment", "workflow_dispatch", "repository_dispatch", "schedule", "push"}
	for _, n := range names {
		f.Add(n, []byte(`{"action":"labeled","label":{"name":"x"},"changes":{"added_labels":[{"name":"a"}]},`+giteaIssue+`,"comment":{"id":1,"body":"/uwf start","user":{"id":-2,"login":"gitea-actions"}},"sender":{"id":1,"login":"ann","type":"User"},"inputs":{"a":1}}`))
	}
	for _, id := range []string{"0", "-1", "1.5", "1e3", `"1"`, "null", "9223372036854775808"} {
		f.Add("pull_request_review_comment", []byte(`{"action":"created",`+giteaPull+`,"comment":{"id":1,"body":"/uwf retry","user":{"id":`+id+`}},"sender":{"id":`+id+`}}`))
	}
	f.Fuzz(func(t *testing.T, name string, payload []byte) {
		e, err := Parse(name, payload)
		var bad *PayloadError
		var cmd *CommandError
		switch {
		case err == nil:
			if e.Sender.ID < 0 || e.CommentAuthor.ID < 0 || e.Subject != nil && e.Subject.AuthorID < 0 || e.Review && !e.Subject.Pull {
				t.Errorf("%+v", e)
			}
			if e.Kind == "" || e.Kind == None && e.Why == "" || e.Kind == Comment && (e.Command == nil || e.Subject == nil || e.CommentID <= 0) || e.Kind == Labeled && len(e.Added) == 0 {
				t.Errorf("%+v", e)
			}
		case errors.As(err, &cmd):
			if e.Subject == nil || e.CommentID <= 0 {
				t.Errorf("nowhere to answer: %+v", e)
			}
		case !errors.As(err, &bad):
			t.Error(err)
		}
	})
}
