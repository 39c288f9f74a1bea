package forgetest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

func labelRoutes() []route {
	const read, write = "issues=read; pull_requests=read", "issues=write; pull_requests=write"
	const doc = "issues/labels#"
	return []route{
		{pattern: "GET labels", need: read, doc: doc + "list-labels-for-a-repository", do: (*Server).listLabels},
		{pattern: "POST labels", need: write, doc: doc + "create-a-label", do: (*Server).createLabel, denied: noWriter},
		{pattern: "GET labels/{name}", need: read, doc: doc + "get-a-label", do: (*Server).getLabel},
		{pattern: "PATCH labels/{name}", need: write, doc: doc + "update-a-label", do: (*Server).editLabel},
		{pattern: "GET issues/{n}/labels", need: read, doc: doc + "list-labels-for-an-issue", do: (*Server).labelsOfIssue},
		{pattern: "POST issues/{n}/labels", need: write, doc: doc + "add-labels-to-an-issue", do: (*Server).putLabels, denied: "write permission is required"},
		{pattern: "DELETE issues/{n}/labels/{name}", need: write, doc: doc + "remove-a-label-from-an-issue", do: (*Server).takeLabel, only: "github"},
		{pattern: "DELETE issues/{n}/labels/{name}", need: read, do: (*Server).takeLabel, only: "gitea"},
	}
}

var color = lazyregexp.New(`^[0-9a-fA-F]{6}$`)

func (s *Server) showLabel(l *Label) map[string]any {
	m := map[string]any{
		"id": l.ID, "name": l.Name, "color": l.Color, "description": l.Description,
		"url": fmt.Sprintf("%s/repos/%s/labels/%s", s.APIURL, s.Repository(), l.Name),
	}
	if s.o.Gitea {
		m["url"] = fmt.Sprintf("%s/repos/%s/labels/%d", s.APIURL, s.Repository(), l.ID)
		m["exclusive"], m["is_archived"] = false, false
		return m
	}
	m["node_id"], m["default"] = "LA_kwDOAAAAAQ", false
	return m
}

// showLabels shows labels by name; names that the repository hasn't are left out.
func (s *Server) showLabels(names []string) []map[string]any {
	list := []map[string]any{}
	for _, n := range names {
		if l := s.label(n); l != nil {
			list = append(list, s.showLabel(l))
		}
	}
	return list
}

func (s *Server) listLabels(q *request) reply {
	part, header := page(s, q, s.state.labels)
	list := []map[string]any{}
	for _, l := range part {
		list = append(list, s.showLabel(l))
	}
	return reply{status: http.StatusOK, body: list, header: header}
}

// createLabel: GitHub refuses a name that is there, Gitea makes another label.
func (s *Server) createLabel(q *request) reply {
	var in struct{ Name, Color, Description string }
	if no, ok := s.decode(q, &in); !ok {
		return no
	}
	switch {
	case in.Name == "" && s.o.Gitea:
		return s.fail(q, http.StatusUnprocessableEntity, "[Name]: Required")
	case in.Name == "":
		return s.invalid(q, "Label", "name", "missing_field", "")
	case s.o.Gitea && in.Color == "":
		return s.fail(q, http.StatusUnprocessableEntity, "[Color]: Required")
	case s.o.Gitea && !color.MatchString(strings.TrimPrefix(in.Color, "#")):
		return s.fail(q, http.StatusUnprocessableEntity, "invalid color: "+in.Color)
	case !s.o.Gitea && in.Color != "" && !color.MatchString(in.Color):
		return s.invalid(q, "Label", "color", "invalid", "")
	case !s.o.Gitea && s.label(in.Name) != nil:
		return s.invalid(q, "Label", "name", "already_exists", "")
	}
	l := s.addLabel(in.Name, or(in.Color, "ededed"), in.Description)
	return reply{status: http.StatusCreated, body: s.showLabel(l)}
}

// labelOf is the label of a request: GitHub knows it by name, Gitea by id.
func (s *Server) labelOf(q *request) *Label {
	if !s.o.Gitea {
		return s.label(q.PathValue("name"))
	}
	for _, l := range s.state.labels {
		if l.ID == q.number("name") {
			return l
		}
	}
	return nil
}

func (s *Server) getLabel(q *request) reply {
	l := s.labelOf(q)
	if l == nil {
		return s.notFound(q)
	}
	return reply{status: http.StatusOK, body: s.showLabel(l)}
}

func (s *Server) editLabel(q *request) reply {
	l := s.labelOf(q)
	if l == nil {
		return s.notFound(q)
	}
	var in struct {
		Color, Description *string
	}
	if no, ok := s.decode(q, &in); !ok {
		return no
	}
	if in.Color != nil {
		l.Color = strings.TrimPrefix(*in.Color, "#")
	}
	if in.Description != nil {
		l.Description = *in.Description
	}
	return reply{status: http.StatusOK, body: s.showLabel(l)}
}

func (s *Server) labelsOfIssue(q *request) reply {
	i, no, ok := s.issue(q, "read")
	if !ok {
		return no
	}
	return reply{status: http.StatusOK, body: s.showLabels(i.Labels)}
}

func (s *Server) putLabels(q *request) reply {
	i, no, ok := s.issue(q, "write")
	if !ok {
		return no
	}
	names, no, ok := s.namesOf(q)
	if !ok {
		return no
	}
	for _, n := range names {
		if s.label(n) == nil {
			if s.o.Gitea {
				continue // ignored, without a word
			}
			s.addLabel(n, "ededed", "")
		}
		i.put(s.label(n).Name)
	}
	return reply{status: http.StatusOK, body: s.showLabels(i.Labels)}
}

// namesOf reads the labels of a request: GitHub takes a list or an object with one,
// Gitea only the object, with names or ids in it.
func (s *Server) namesOf(q *request) ([]string, reply, bool) {
	if !s.o.Gitea && strings.HasPrefix(strings.TrimSpace(string(q.body)), "[") {
		var names []string
		no, ok := s.decode(q, &names)
		return names, no, ok
	}
	var in struct{ Labels []any }
	if s.o.Gitea && strings.HasPrefix(strings.TrimSpace(string(q.body)), "[") {
		return nil, s.fail(q, http.StatusUnprocessableEntity, "[]: json: cannot unmarshal array into Go value of type structs.IssueLabelsOption"), false
	}
	if no, ok := s.decode(q, &in); !ok {
		return nil, no, false
	}
	var names []string
	for _, one := range in.Labels {
		switch v := one.(type) {
		case string:
			names = append(names, v)
		case float64:
			for _, l := range s.state.labels {
				if s.o.Gitea && l.ID == int64(v) {
					names = append(names, l.Name)
				}
			}
		default:
			return nil, s.fail(q, http.StatusBadRequest, "a label must be an integer or a string"), false
		}
	}
	return names, reply{}, true
}

// takeLabel: GitHub answers with what is left, Gitea with nothing.
func (s *Server) takeLabel(q *request) reply {
	i, no, ok := s.issue(q, "write")
	if !ok {
		return no
	}
	l := s.labelOf(q)
	if s.o.Gitea && l == nil {
		return s.fail(q, http.StatusUnprocessableEntity, fmt.Sprintf("label does not exist [label_id: %d]", q.number("name")))
	}
	if !s.o.Gitea && (l == nil || !has(i.Labels, l.Name)) {
		return s.fail(q, http.StatusNotFound, "Label does not exist")
	}
	i.Labels = slices.DeleteFunc(i.Labels, func(n string) bool { return strings.EqualFold(n, l.Name) })
	if s.o.Gitea {
		return reply{status: http.StatusNoContent}
	}
	return reply{status: http.StatusOK, body: s.showLabels(i.Labels)}
}
