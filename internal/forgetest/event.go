package forgetest

import (
	"encoding/json"
	"fmt"
	"maps"
)

// Event is what starts a job.
type Event struct {
	Name    string // GITHUB_EVENT_NAME
	Payload []byte // the file at GITHUB_EVENT_PATH
	Actor   string // GITHUB_ACTOR
	// Ref is the branch whose workflow file runs.
	Ref string
	// Run is the run's id, where the forge gave one out already.
	Run int64
}

// event makes an event of the parts that its kind has; the server is locked.
func (s *Server) event(name, by string, parts map[string]any) Event {
	m := map[string]any{"repository": s.repository(), "sender": s.user(by)}
	maps.Copy(m, parts)
	raw, err := json.Marshal(m)
	if err != nil {
		panic("forgetest: " + err.Error()) // only texts, numbers, lists and maps are in it
	}
	return Event{Name: name, Payload: raw, Actor: by, Ref: s.state.branch}
}

// subject is the part that an issue or pull request has in events about itself.
func (s *Server) subject(i *Issue) (name string, parts map[string]any) {
	if i.Pull != nil {
		return "pull_request", map[string]any{"number": i.Number, "pull_request": s.showPull(i)}
	}
	parts = map[string]any{"issue": s.showIssue(i)}
	if s.o.Gitea {
		parts["number"], parts["commit_id"] = i.Number, ""
	}
	return "issues", parts
}

// PutLabel puts a label on an issue or pull request, as a person does, and returns the
// event. The label is made where it is missing.
func (s *Server) PutLabel(by string, n int, name string) Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.mustIssue(n)
	if s.label(name) == nil {
		s.addLabel(name, "ededed", "")
	}
	i.put(name)
	i.labeled = s.now()
	kind, parts := s.subject(i)
	if s.o.Gitea {
		parts["action"] = "label_updated"
		added := s.showLabels([]string{name})
		added[0]["color"] = "" // Gitea leaves it out here
		parts["changes"] = map[string]any{"added_labels": added, "removed_labels": []any{}}
	} else {
		parts["action"], parts["label"] = "labeled", s.showLabel(s.label(name))
	}
	return s.event(kind, by, parts)
}

// Assign assigns an issue or pull request to somebody, and returns the event.
func (s *Server) Assign(by string, n int, login string) Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.mustIssue(n)
	i.Assignees = append(i.Assignees, login)
	kind, parts := s.subject(i)
	parts["action"] = "assigned"
	if !s.o.Gitea {
		parts["assignee"] = s.user(login)
	}
	return s.event(kind, by, parts)
}

// PostComment comments on an issue or pull request as a person does, and returns the event.
func (s *Server) PostComment(by string, n int, body string) Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.mustIssue(n)
	c := s.addComment(by, n, body)
	parts := map[string]any{"action": "created", "issue": s.showIssue(i), "comment": s.showComment(c)}
	if s.o.Gitea {
		parts["is_pull"] = i.Pull != nil
	}
	return s.event("issue_comment", by, parts)
}

// SayOnLine comments on a line of a pull request as a person does, and returns the
// event. The comment is none of Comments. It is GitHub's alone: Gitea's event of that
// name is about a review, and tells of no comment.
func (s *Server) SayOnLine(by string, n int, body string) Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.mustIssue(n)
	if s.o.Gitea || i.Pull == nil {
		panic(fmt.Sprintf("forgetest: #%d is no pull request of GitHub's", n))
	}
	c := s.newComment(by, n, body)
	s.state.lines = append(s.state.lines, c)
	return s.event("pull_request_review_comment", by, map[string]any{"action": "created", "pull_request": s.showPull(i), "comment": s.showLineComment(c)})
}

// Schedule is the event of a schedule's time.
func (s *Server) Schedule(cron string) Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.event("schedule", s.o.Owner, map[string]any{"schedule": cron, "workflow": ".github/workflows/uwf.yml"})
}

// Manual is the event of somebody who starts a workflow file by hand.
func (s *Server) Manual(by, file string, inputs map[string]string) Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dispatched(Dispatch{Workflow: file, Ref: s.state.branch, Inputs: inputs, By: by})
}

// Push is the event of a push to the default branch: one that uwf doesn't know.
func (s *Server) Push(by string) Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.event("push", by, map[string]any{"ref": "refs/heads/" + s.state.branch, "after": s.rev(s.state.branch), "commits": []any{}})
}

// Dispatched is the event of a dispatch.
func (s *Server) Dispatched(d Dispatch) Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dispatched(d)
}

func (s *Server) dispatched(d Dispatch) Event {
	var e Event
	if d.Workflow != "" {
		inputs := map[string]any{}
		for k, v := range d.Inputs {
			inputs[k] = v
		}
		parts := map[string]any{"inputs": inputs, "ref": "refs/heads/" + d.Ref, "workflow": ".github/workflows/" + d.Workflow}
		if s.o.Gitea {
			parts["ref"], parts["workflow"] = d.Ref, d.Workflow
		}
		e = s.event("workflow_dispatch", d.By, parts)
	} else {
		e = s.event("repository_dispatch", d.By, map[string]any{"action": d.Type, "branch": d.Ref, "client_payload": d.Payload})
	}
	e.Run = d.Run
	return e
}
