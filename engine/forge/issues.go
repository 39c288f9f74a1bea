package forge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/internal/lists"
)

// MaxBody is the longest body of a comment, an issue or a pull request, in
// characters.
const MaxBody = 65536

const (
	// maxPages bounds lists that have to be read whole: 10,000 comments on GitHub.
	maxPages = 100
	// maxLabelPages is 2,000 labels of a Gitea repository.
	maxLabelPages = 40
)

// The answers are read into types of our own: Gitea's do not all decode into
// go-github's (an issue's repository has a text for its owner).

type user struct {
	Login string `json:"login"`
	ID    int64  `json:"id"`
	Type  string `json:"type"` // GitHub
}

// builtIn reports one of the users that Gitea numbers below 0: who jobs act as, and who
// stands for users that were deleted.
func (u user) builtIn() bool { return u.ID < 0 }

// accountID is the user's id; 0 where there is none.
func (u user) accountID() int64 { return max(u.ID, 0) }

type label struct {
	ID   int64  `json:"id"`
	Name string `json:"name"`
}

type issue struct {
	Number int     `json:"number"`
	Title  string  `json:"title"`
	Body   string  `json:"body"`
	User   user    `json:"user"`
	Labels []label `json:"labels"`
	State  string  `json:"state"`
	// Updated is when anything of it changed last. Pull is null if it is no pull request.
	Updated time.Time       `json:"updated_at"`
	Pull    json.RawMessage `json:"pull_request"`
	// HTMLURL is the address of its page, in the repository that it is in.
	HTMLURL  string    `json:"html_url"`
	ClosedAt time.Time `json:"closed_at"`
	ClosedBy user      `json:"closed_by"` // GitHub
}

func (is issue) toIssue() Issue {
	out := Issue{
		Number: is.Number, Title: is.Title, Body: is.Body, Author: is.User.Login, AuthorID: is.User.accountID(),
		Open: is.State == "open", Updated: is.Updated, ClosedAt: is.ClosedAt, ClosedBy: is.ClosedBy.Login,
	}
	for _, l := range is.Labels {
		out.Labels = append(out.Labels, l.Name)
	}
	return out
}

type comment struct {
	ID      int64  `json:"id"`
	Body    string `json:"body"`
	User    user   `json:"user"`
	HTMLURL string `json:"html_url"`
	// One of these is the address of what it is on. Gitea has both, and one empty.
	IssueURL string    `json:"issue_url"`
	PullURL  string    `json:"pull_request_url"`
	Created  time.Time `json:"created_at"`
}

func (c comment) toComment() Comment {
	on := cmp.Or(c.IssueURL, c.PullURL)
	number, _ := strconv.Atoi(on[strings.LastIndexByte(on, '/')+1:]) // 0 where it is none
	return Comment{
		ID: c.ID, Body: c.Body, Author: c.User.Login, AuthorID: c.User.accountID(), URL: c.HTMLURL,
		Number: max(number, 0), Created: c.Created,
	}
}

// ReadIssue is an issue or a pull request by its number.
func (c *client) ReadIssue(ctx context.Context, number int) (Issue, error) {
	var is issue
	if _, err := c.makeCall(ctx, request{do: fmt.Sprintf("read issue %d", number), method: http.MethodGet, path: fmt.Sprintf("/issues/%d", number)}, &is); err != nil {
		return Issue{}, err
	}
	out := is.toIssue()
	if in := repositoryOf(is.HTMLURL); in != "" && !strings.EqualFold(in, c.o.Repository) {
		// The forge led to another repository: this one has a new name, or only the issue is there.
		repo, err := c.ReadRepository(ctx)
		if err != nil {
			return Issue{}, err
		}
		if !strings.EqualFold(in, repo.FullName) {
			out.Moved = is.HTMLURL
		}
	}
	return out, nil
}

// ListIssues are open issues with a label. Gitea lists all of them if it has no such label.
func (c *client) ListIssues(ctx context.Context, label string) ([]Issue, error) {
	q := url.Values{"state": {"open"}, "labels": {label}, "sort": {"updated"}, "type": {"issues"}} // type: Gitea
	var out []Issue
	_, err := readPages(ctx, c, request{do: "list the open issues with the label " + label, method: http.MethodGet, path: "/issues", query: q}, 1, func(list []issue) bool {
		for _, is := range list {
			isPull := len(is.Pull) > 0 && string(is.Pull) != "null"
			if i := is.toIssue(); !isPull && slices.ContainsFunc(i.Labels, func(l string) bool { return strings.EqualFold(l, label) }) {
				out = append(out, i)
			}
		}
		return true
	})
	return out, err
}

// repositoryOf is owner/name in the address of an issue's page; empty: there is none.
func repositoryOf(page string) string {
	parts := strings.Split(page, "/")
	if len(parts) < 4 {
		return ""
	}
	return strings.Join(parts[len(parts)-4:len(parts)-2], "/")
}

// ListComments are all comments, the oldest first. Gitea sends them all at once,
// whatever page is asked for.
func (c *client) ListComments(ctx context.Context, number int) ([]Comment, error) {
	do := fmt.Sprintf("list the comments of %d", number)
	var out []Comment
	more, err := readPages(ctx, c, request{do: do, method: http.MethodGet, path: fmt.Sprintf("/issues/%d/comments", number)}, maxPages, func(list []comment) bool {
		out = append(out, lists.Map(list, comment.toComment)...)
		return false
	})
	if err == nil && more {
		err = &CallError{Do: do, Kind: ErrInvalid, Message: fmt.Sprintf("there are more than %d", len(out))}
	}
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(out, func(a, b Comment) int { return cmp.Compare(a.ID, b.ID) })
	// Comments that are deleted while the list is read shift it: one may come twice.
	return slices.CompactFunc(out, func(a, b Comment) bool { return a.ID == b.ID }), nil
}

// ReadComment is a comment by its id. Gitea answers without a body where the id is of
// something else in an issue's time line.
func (c *client) ReadComment(ctx context.Context, id int64) (Comment, error) {
	return c.fetchComment(ctx, fmt.Sprintf("read comment %d", id), "/issues/comments/", id)
}

// ReadLineComment is a comment on a line of a pull request. Gitea shows such comments
// only by their pull request and its review.
func (c *client) ReadLineComment(ctx context.Context, id int64) (Comment, error) {
	do := fmt.Sprintf("read the comment %d on a line", id)
	if c.flavour == Gitea {
		return Comment{}, &CallError{Do: do, Kind: ErrNotFound, Message: "Gitea has no call for it"}
	}
	return c.fetchComment(ctx, do, "/pulls/comments/", id)
}

// fetchComment reads the comment with an id from one of the forge's lists.
func (c *client) fetchComment(ctx context.Context, do, from string, id int64) (Comment, error) {
	var got comment
	if _, err := c.makeCall(ctx, request{do: do, method: http.MethodGet, path: fmt.Sprintf("%s%d", from, id)}, &got); err != nil {
		return Comment{}, err
	}
	if got.ID != id {
		return Comment{}, &CallError{Do: do, Kind: ErrNotFound, Message: "it is no comment"}
	}
	return got.toComment(), nil
}

// CreateComment writes a comment. If an answer got lost, one with the same text is taken for it.
func (c *client) CreateComment(ctx context.Context, number int, body string) (Comment, error) {
	var made comment
	var there Comment
	r := request{do: fmt.Sprintf("comment on %d", number), method: http.MethodPost, path: fmt.Sprintf("/issues/%d/comments", number), text: body, body: commentBody(body)}
	r.find = func(meanwhile *connection) (bool, error) {
		list, err := c.over(meanwhile).ListComments(ctx, number)
		i := slices.IndexFunc(list, func(c Comment) bool { return hasSameText(c.Body, body) })
		if i >= 0 {
			there = list[i]
		}
		return i >= 0, err
	}
	_, err := c.makeCall(ctx, r, &made)
	if there.ID != 0 {
		return there, err
	}
	return made.toComment(), err
}

// hasSameText reports whether a forge shows a text that it was given: it may end lines otherwise.
func hasSameText(shown, given string) bool {
	plain := func(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }
	return plain(shown) == plain(given)
}

func commentBody(text string) map[string]string { return map[string]string{"body": text} }

// UpdateComment replaces a comment's body.
func (c *client) UpdateComment(ctx context.Context, id int64, body string) error {
	_, err := c.makeCall(ctx, request{do: fmt.Sprintf("update comment %d", id), method: http.MethodPatch, path: fmt.Sprintf("/issues/comments/%d", id), text: body, body: commentBody(body)}, nil)
	return err
}

// DeleteComment takes a comment away; that it is gone is no error.
func (c *client) DeleteComment(ctx context.Context, id int64) error {
	_, err := c.makeCall(ctx, request{do: fmt.Sprintf("delete comment %d", id), method: http.MethodDelete, path: fmt.Sprintf("/issues/comments/%d", id)}, nil)
	return ignoreKind(err, ErrNotFound)
}

// ignoreKind takes an error of a kind for none.
func ignoreKind(err, kind error) error {
	if errors.Is(err, kind) {
		return nil
	}
	return err
}

// EnsureLabel makes a label where it is missing. Gitea would make a second one of
// the same name, so there the list is read first.
func (c *client) EnsureLabel(ctx context.Context, l Label) error {
	if c.flavour == Gitea {
		_, err := c.giteaLabel(ctx, l)
		return err
	}
	_, err := c.makeLabel(ctx, l)
	if e := (*CallError)(nil); errors.As(err, &e) && e.Status == http.StatusUnprocessableEntity && strings.Contains(e.Message, "already_exists") {
		return nil
	}
	return err
}

// makeLabel makes a label, and gives its number.
func (c *client) makeLabel(ctx context.Context, l Label) (int64, error) {
	var made label
	color := l.Color
	if c.flavour == Gitea {
		color = "#" + color
	}
	_, err := c.makeCall(ctx, request{
		do: "make the label " + l.Name, method: http.MethodPost, path: "/labels",
		body: map[string]string{"name": l.Name, "color": color, "description": l.Description},
		// GitHub refuses a second one of that name.
		safe: c.flavour == GitHub,
		find: func(meanwhile *connection) (_ bool, err error) {
			made.ID, err = c.over(meanwhile).searchLabel(ctx, l.Name)
			return made.ID != 0, err
		},
	}, &made)
	return made.ID, err
}

// giteaLabel finds a label's number, or makes the label.
func (c *client) giteaLabel(ctx context.Context, l Label) (int64, error) {
	found, err := c.searchLabel(ctx, l.Name)
	if found != 0 || err != nil {
		return found, err
	}
	return c.makeLabel(ctx, l)
}

// searchLabel finds a label's number; 0: the repository has none of that name.
func (c *client) searchLabel(ctx context.Context, name string) (found int64, err error) {
	do := "look for the label " + name
	more, err := readPages(ctx, c, request{do: do, method: http.MethodGet, path: "/labels"}, maxLabelPages, func(list []label) bool {
		found = findLabel(list, name)
		return found != 0
	})
	if err == nil && more {
		err = &CallError{Do: do, Kind: ErrInvalid, Message: "the repository has too many labels to look through"}
	}
	return found, err
}

// findLabel is the number of the label with that name; 0: there is none.
func findLabel(list []label, name string) int64 {
	for _, l := range list {
		if strings.EqualFold(l.Name, name) {
			return l.ID
		}
	}
	return 0
}

// AddLabel puts a label on an issue. GitHub would make a missing one grey, so it is
// made first; Gitea wants its number. Both take an object with a list.
func (c *client) AddLabel(ctx context.Context, number int, l Label) error {
	var which any = l.Name
	if c.flavour == Gitea {
		id, err := c.giteaLabel(ctx, l)
		if err != nil {
			return err
		}
		which = id
	} else if err := ignoreKind(c.EnsureLabel(ctx, l), ErrForbidden); err != nil {
		return err
	}
	_, err := c.makeCall(ctx, request{
		do: fmt.Sprintf("put the label %s on %d", l.Name, number), method: http.MethodPost,
		path: fmt.Sprintf("/issues/%d/labels", number), body: map[string]any{"labels": []any{which}}, safe: true,
	}, nil)
	return err
}

// RemoveLabel takes a label off an issue. Gitea wants its number.
func (c *client) RemoveLabel(ctx context.Context, number int, name string) error {
	do := fmt.Sprintf("take the label %s off %d", name, number)
	path := fmt.Sprintf("/issues/%d/labels", number)
	which := url.PathEscape(name)
	if c.flavour == Gitea {
		var list []label
		if _, err := c.makeCall(ctx, request{do: do, method: http.MethodGet, path: path}, &list); err != nil {
			return ignoreKind(err, ErrNotFound)
		}
		id := findLabel(list, name)
		if id == 0 {
			return nil
		}
		which = fmt.Sprint(id)
	}
	_, err := c.makeCall(ctx, request{do: do, method: http.MethodDelete, path: path + "/" + which}, nil)
	return ignoreKind(err, ErrNotFound)
}
