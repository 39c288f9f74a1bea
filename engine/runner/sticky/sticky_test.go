package sticky_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/runner/report"
	"github.com/united-workforce/uwf/engine/runner/sticky"
)

const (
	id   = "01JD0000000000000000000001"
	bot  = "uwf[bot]"
	made = 9 // the id of a comment that is made
)

// issue is a forge with the comments of one issue.
type issue struct {
	forge.Forge
	list  []forge.Comment
	fails map[string]error // by the call that does not happen
	lost  bool             // a comment is made, and the answer to that is lost
	did   []string         // what was changed
}

func (f *issue) ReadComment(_ context.Context, id int64) (forge.Comment, error) {
	for _, c := range f.list {
		if c.ID == id {
			return c, f.fails["comment"]
		}
	}
	return forge.Comment{}, errors.Join(f.fails["comment"], fault(forge.ErrNotFound, false))
}

func (f *issue) ListComments(context.Context, int) ([]forge.Comment, error) {
	return f.list, f.fails["comments"]
}

func (f *issue) CreateComment(_ context.Context, _ int, body string) (forge.Comment, error) {
	if err := f.fails["create"]; err != nil {
		return forge.Comment{}, err
	}
	c := forge.Comment{ID: made, Author: bot, Body: body}
	f.list, f.did = append(f.list, c), append(f.did, "created")
	if f.lost {
		return forge.Comment{}, fault(forge.ErrUnreachable, true)
	}
	return c, nil
}

func (f *issue) UpdateComment(_ context.Context, id int64, _ string) error {
	if err := f.fails["update"]; err != nil {
		if errors.Is(err, forge.ErrNotFound) {
			f.list = nil
		}
		return err
	}
	f.did = append(f.did, fmt.Sprintf("updated %d", id))
	return nil
}

func (f *issue) DeleteComment(_ context.Context, id int64) error {
	f.did = append(f.did, fmt.Sprintf("deleted %d", id))
	return f.fails["delete"]
}

func fault(kind error, unsure bool) error {
	return &forge.CallError{Do: "do it", Kind: kind, Unsure: unsure}
}

var errSecret = errors.New("it could not be checked for secrets")

// What a thread's comment leads to on an issue: what is changed there, and what is said
// where that is not known.
func TestWrite(t *testing.T) {
	comment := func(id int64, author, body string) forge.Comment {
		return forge.Comment{ID: id, Author: author, Body: body}
	}
	ours, now := report.Marker(id)+"\nours", report.Marker(id)+"\nours, later"
	gone, denied, away := fault(forge.ErrNotFound, false), fault(forge.ErrForbidden, false), fault(forge.ErrUnreachable, false)
	for name, c := range map[string]struct {
		comment sticky.Comment
		list    []forge.Comment
		fails   map[string]error
		lost    bool
		did     string
		err     error
		off     bool // nothing is written any more
		warned  bool
	}{
		"the first one":                     {did: "created"},
		"none is wanted":                    {comment: sticky.Comment{Off: true}, off: true},
		"a secret in it":                    {comment: sticky.Comment{Clean: func(string) (string, error) { return "", errSecret }}, err: errSecret},
		"known by its id":                   {comment: sticky.Comment{ID: 3}, list: []forge.Comment{comment(3, bot, ours)}, did: "updated 3"},
		"it says so already":                {comment: sticky.Comment{ID: 3}, list: []forge.Comment{comment(3, bot, now+"\n")}},
		"found, and it says so already":     {list: []forge.Comment{comment(3, bot, now)}},
		"found by its marker":               {list: []forge.Comment{comment(2, "ann", "hello"), comment(3, bot, ours)}, did: "updated 3"},
		"an id of somebody's words":         {comment: sticky.Comment{ID: 2}, list: []forge.Comment{comment(2, "ann", "hello")}, did: "created"},
		"an id of another thread's":         {comment: sticky.Comment{ID: 2}, list: []forge.Comment{comment(2, bot, report.Marker("01JD0000000000000000000002"))}, did: "created"},
		"an id that nothing has":            {comment: sticky.Comment{ID: 2}, list: []forge.Comment{comment(3, bot, ours)}, did: "updated 3"},
		"its id can't be looked at":         {comment: sticky.Comment{ID: 3}, list: []forge.Comment{comment(3, bot, ours)}, fails: map[string]error{"comment": away}, err: forge.ErrUnreachable},
		"its id may not be looked at":       {comment: sticky.Comment{ID: 3}, list: []forge.Comment{comment(3, bot, ours)}, fails: map[string]error{"comment": denied}, err: forge.ErrForbidden, off: true},
		"the comments can't be listed":      {fails: map[string]error{"comments": away}, err: forge.ErrUnreachable},
		"it was deleted":                    {list: []forge.Comment{comment(3, bot, ours)}, fails: map[string]error{"update": gone}, did: "created"},
		"it can't be changed":               {list: []forge.Comment{comment(3, bot, ours)}, fails: map[string]error{"update": away}, err: forge.ErrUnreachable},
		"it may not be changed":             {list: []forge.Comment{comment(3, bot, ours)}, fails: map[string]error{"update": denied}, err: forge.ErrForbidden, off: true},
		"none can be made":                  {fails: map[string]error{"create": away}, err: forge.ErrUnreachable},
		"none may be made":                  {fails: map[string]error{"create": denied}, err: forge.ErrForbidden, off: true},
		"the answer is lost":                {lost: true, did: "created", err: forge.ErrUnreachable},
		"it was not made, for sure":         {comment: sticky.Comment{Fresh: true}, list: []forge.Comment{comment(3, bot, ours)}, fails: map[string]error{"create": away}, err: forge.ErrUnreachable},
		"it was not made, nobody knows why": {comment: sticky.Comment{Fresh: true}, list: []forge.Comment{comment(3, bot, ours)}, fails: map[string]error{"create": context.Canceled}, err: context.Canceled},
		"it may have been made, and wasn't": {fails: map[string]error{"create": fault(forge.ErrUnreachable, true)}, err: forge.ErrUnreachable},
		"made, and then no answer":          {comment: sticky.Comment{Fresh: true}, fails: map[string]error{"comments": away}, did: "created", err: forge.ErrUnreachable},
		"another job was first":             {comment: sticky.Comment{Fresh: true}, list: []forge.Comment{comment(3, bot, ours)}, did: "created, deleted 9, updated 3"},
		"the second one can't be deleted":   {comment: sticky.Comment{Fresh: true}, list: []forge.Comment{comment(3, bot, ours)}, fails: map[string]error{"delete": away}, did: "created, deleted 9, updated 3", warned: true},
		"a person copied the marker":        {list: []forge.Comment{comment(2, "ann", ours), comment(3, bot, ours)}, did: "updated 3"},
		"people's, where no bot writes":     {list: []forge.Comment{comment(2, "ann", ours), comment(3, "bob", ours)}, did: "updated 2"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &issue{list: c.list, fails: c.fails, lost: c.lost}
			k := c.comment
			k.Forge, k.Thread, k.Number = f, id, 7
			if k.Clean == nil {
				k.Clean = func(s string) (string, error) { return s, nil }
			}
			warned := false
			k.Warn = func(string, error) { warned = true }
			k.Hook = func(string) {}
			err := k.Write(t.Context(), now)
			if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Errorf("the error is %v, want %v", err, c.err)
			}
			if did := strings.Join(f.did, ", "); did != c.did {
				t.Errorf("it %s, want %s", did, c.did)
			}
			if k.Off != c.off || warned != c.warned {
				t.Errorf("off: %v, warned: %v", k.Off, warned)
			}
		})
	}
}
