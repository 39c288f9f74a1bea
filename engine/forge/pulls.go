package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// maxPullPages bounds the search for a branch's pull request where the forge does
// not search itself: the newest 1,000 of each state.
const maxPullPages = 20

type pull struct {
	Number   int       `json:"number"`
	Title    string    `json:"title"`
	Body     string    `json:"body"`
	User     user      `json:"user"`
	State    string    `json:"state"`
	Merged   bool      `json:"merged"`
	MergedAt string    `json:"merged_at"` // lists of GitHub have no merged
	ClosedAt time.Time `json:"closed_at"`
	Head     side      `json:"head"`
	Base     side      `json:"base"`
	HTMLURL  string    `json:"html_url"`
}

type side struct {
	Ref  string `json:"ref"`
	SHA  string `json:"sha"`
	Repo *struct {
		FullName string `json:"full_name"`
	} `json:"repo"` // null when it was deleted
}

func (s side) toBranch() Branch {
	b := Branch{Name: s.Ref, SHA: s.SHA}
	if s.Repo != nil {
		b.Repo = s.Repo.FullName
	}
	return b
}

func (p pull) toPull() Pull {
	return Pull{
		Number: p.Number, Title: p.Title, Body: p.Body, Author: p.User.Login, AuthorID: p.User.accountID(), Open: p.State == "open", ClosedAt: p.ClosedAt,
		Merged: p.Merged || p.MergedAt != "", Head: p.Head.toBranch(), Base: p.Base.toBranch(), URL: p.HTMLURL,
	}
}

// ReadPull is a pull request by its number.
func (c *client) ReadPull(ctx context.Context, number int) (Pull, error) {
	var p pull
	_, err := c.makeCall(ctx, request{do: fmt.Sprintf("read pull request %d", number), method: http.MethodGet, path: fmt.Sprintf("/pulls/%d", number)}, &p)
	return p.toPull(), err
}

// FindPull finds a branch's pull request. GitHub searches; Gitea ignores the
// filter, so the open ones and then the newest closed ones are looked through.
// What GitHub finds is looked at as well: a fork's branch may have the same name.
func (c *client) FindPull(ctx context.Context, branch string) (Pull, bool, error) {
	states, order := []string{"all"}, "created"
	if c.flavour == Gitea {
		states, order = []string{"open", "closed"}, "recentupdate"
	}
	for _, state := range states {
		q := url.Values{"state": {state}, "head": {c.owner + ":" + branch}, "sort": {order}, "direction": {"desc"}}
		if p, ok, err := c.searchPulls(ctx, q, branch); ok || err != nil {
			return p, ok, err
		}
	}
	return Pull{}, false, nil
}

// searchPulls looks through a list for the branch's open pull request, else its
// newest.
func (c *client) searchPulls(ctx context.Context, q url.Values, branch string) (best Pull, found bool, err error) {
	_, err = readPages(ctx, c, request{do: "look for the pull request of " + branch, method: http.MethodGet, path: "/pulls", query: q}, maxPullPages, func(list []pull) bool {
		for _, p := range list {
			p := p.toPull()
			if p.Head.Name != branch || !strings.EqualFold(p.Head.Repo, c.o.Repository) {
				continue
			}
			if !found || p.Open && !best.Open || p.Open == best.Open && p.Number > best.Number {
				best, found = p, true
			}
		}
		return found && best.Open
	})
	return best, found && err == nil, err
}

// CreatePull opens a pull request. If an answer got lost, the branch's open one is taken for it.
func (c *client) CreatePull(ctx context.Context, p NewPull) (Pull, error) {
	body := map[string]any{"title": p.Title, "body": p.Body, "head": p.Head, "base": p.Base}
	switch {
	case p.Draft && c.flavour == Gitea:
		body["title"] = draftPrefix + p.Title // a draft is one by its title there
	case p.Draft:
		body["draft"] = true
	}
	var made pull
	var there Pull
	r := request{do: "open a pull request for " + p.Head, method: http.MethodPost, path: "/pulls", text: p.Body, body: body}
	r.find = func(meanwhile *connection) (_ bool, err error) {
		there, _, err = c.over(meanwhile).FindPull(ctx, p.Head)
		return there.Open, err
	}
	_, err := c.makeCall(ctx, r, &made)
	if there.Open && err == nil {
		return there, nil
	}
	return made.toPull(), classifyPullError(err)
}

// draftPrefix begins the title of a draft on Gitea.
const draftPrefix = "WIP: "

// classifyPullError tells apart why a pull request was refused, which GitHub says with one
// status and different words.
func classifyPullError(err error) error {
	var e *CallError
	if !errors.As(err, &e) {
		return err
	}
	switch {
	case e.Status == http.StatusConflict:
		e.Kind = ErrExists // Gitea
	case e.Status != http.StatusUnprocessableEntity:
	case mentionsWords(e, "already exists"):
		e.Kind = ErrExists
	case mentionsWords(e, "no commits between"), mentionsWords(e, "no changes between"):
		e.Kind = ErrNoChanges
	}
	return e
}

func mentionsWords(e *CallError, words string) bool {
	return strings.Contains(strings.ToLower(e.Message), words)
}

// UpdatePull replaces title and body. On Gitea a draft stays one.
func (c *client) UpdatePull(ctx context.Context, number int, title, body string) error {
	if c.flavour == Gitea {
		now, err := c.ReadPull(ctx, number)
		if err != nil {
			return err
		}
		if strings.HasPrefix(now.Title, draftPrefix) && !strings.HasPrefix(title, draftPrefix) {
			title = draftPrefix + title
		}
	}
	_, err := c.makeCall(ctx, request{
		do: fmt.Sprintf("update pull request %d", number), method: http.MethodPatch, path: fmt.Sprintf("/pulls/%d", number), text: body,
		body: map[string]string{"title": title, "body": body},
	}, nil)
	return err
}
