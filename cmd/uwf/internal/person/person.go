// Package person says who works on this machine: by git's own settings, and, where it
// matters, by the forge's answer to the token that they have here.
package person

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/hosted"
	"github.com/united-workforce/uwf/cmd/uwf/internal/worker"
	"github.com/united-workforce/uwf/engine/forge"
	"github.com/united-workforce/uwf/engine/story"
	"github.com/united-workforce/uwf/gitcas/record"
)

// NewWorker makes a worker whose deeds are those of the person of this machine. It runs no agent,
// and so asks for no consent.
func NewWorker(ctx context.Context, f *app.Factory, o worker.Options) (*worker.Worker, error) {
	o.AsksNobody = true
	w, err := worker.New(ctx, f, o)
	if err != nil {
		return nil, err
	}
	w.By, err = IdentifyByGit(ctx, f)
	w.ProvePerson = func(ctx context.Context) (*story.Person, error) { return IdentifyByToken(ctx, f) }
	return w, err
}

// IdentifyByGit is who git says works here: GIT_AUTHOR_NAME and GIT_AUTHOR_EMAIL, else user.name
// and user.email, else the account's name. Anybody can set these.
func IdentifyByGit(ctx context.Context, f *app.Factory) (*story.Person, error) {
	name, email := f.Getenv("GIT_AUTHOR_NAME"), f.Getenv("GIT_AUTHOR_EMAIL")
	if name == "" || email == "" {
		// That neither is set is an error to git, and none here.
		out, _ := f.Git(ctx, app.GitCall{Dir: f.RepoRoot(), Args: []string{"config", "--get-regexp", `^user\.(name|email)$`}})
		for line := range strings.Lines(string(out)) {
			switch key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " "); key {
			case "user.name":
				name = cmp.Or(f.Getenv("GIT_AUTHOR_NAME"), value)
			case "user.email":
				email = cmp.Or(f.Getenv("GIT_AUTHOR_EMAIL"), value)
			}
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	name = cmp.Or(record.Line(name), record.Line(f.Getenv("USER")), record.Line(f.Getenv("LOGNAME")), "somebody")
	r, err := f.Redactor(ctx)
	if err != nil {
		return nil, err
	}
	p := &story.Person{By: record.By{Kind: record.ByLocal}}
	p.Email, _ = r.String(record.Line(email))
	p.Name, _ = r.String(name)
	p.Name = cmp.Or(record.Line(p.Name), "somebody") // what stands for a secret may be longer
	return p, nil
}

// IdentifyByToken asks the store's forge whose token is used here, and whether that person may
// write to the repository.
func IdentifyByToken(ctx context.Context, f *app.Factory) (*story.Person, error) {
	loc, err := f.Locate(ctx)
	if err != nil {
		return nil, err
	}
	at, err := hosted.Find(ctx, f, loc.URL)
	if err != nil {
		return nil, errors.New("the store is on no forge that could say who you are")
	}
	c, err := hosted.NewClient(f).Forge(ctx, at)
	if err != nil {
		return nil, fmt.Errorf("ask %s who you are: %w", at.Server, err)
	}
	return ReadTokenOwner(ctx, c, at)
}

// ReadTokenOwner is whom a forge names as the owner of the token that it is asked with.
func ReadTokenOwner(ctx context.Context, c forge.Forge, at hosted.Place) (*story.Person, error) {
	me, err := c.ReadTokenOwner(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask %s who you are: %w", at.Server, err)
	}
	if me.Bot {
		return nil, fmt.Errorf("the token for %s is that of %s, a bot", at.Server, me.Login)
	}
	p, err := c.ReadPermission(ctx, me.Login)
	switch {
	case err != nil:
		return nil, fmt.Errorf("ask %s what you may do: %w", at.Server, err)
	case p < forge.Write:
		return nil, fmt.Errorf("%s doesn't say that %s may write to %s", at.Server, me.Login, at.Repository)
	}
	by := record.By{Kind: record.ByForge, Login: me.Login, ID: me.ID}
	return &story.Person{By: by, Email: forge.NoReplyAddress(c.ForgeFlavour(), at.Server.String(), me.Login, me.ID)}, by.Validate()
}
