package app

import (
	"context"

	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/text"
)

// ShowBranch is the command that shows what is on a branch of the store's remote, commit
// by commit, typed where this process runs; empty where that can't be told.
func (f *Factory) ShowBranch(ctx context.Context, branch string) string {
	return refShower{f}.showRef(ctx, "log -p", branch)
}

// ShowRef is the command that shows the commit of another ref of the store's remote.
func (f *Factory) ShowRef(ctx context.Context, ref string) string {
	return refShower{f}.showRef(ctx, "show", ref)
}

// refShower says how a person sees a ref.
type refShower struct{ *Factory }

// showRef is that of git which shows a ref. Only a store that is this repository itself
// has its refs here; of another one the ref is fetched first.
func (f refShower) showRef(ctx context.Context, verb, ref string) string {
	loc, err := f.Locate(ctx)
	if err != nil {
		return ""
	}
	dir, personal := loc.personalDir()
	remote := f.remoteWord(loc)
	switch {
	case personal:
		return "git -C " + text.ShellWord(dir) + " " + verb + " " + ref
	case loc.Kind == RepositoryStore:
		return "git " + verb + " " + ref
	case f.RepoRoot() == "" && f.Job == nil:
		return "git init -q uwf-look && git -C uwf-look fetch " + remote + " " + ref + " && git -C uwf-look " + verb + " FETCH_HEAD"
	}
	return "git fetch " + remote + " " + ref + " && git " + verb + " FETCH_HEAD"
}

// remoteWord is how git is told which remote: by its name, where it has one here.
func (f refShower) remoteWord(loc Location) string {
	if c, err := f.Config(); err == nil && f.Job == nil && isRemoteName(c.State.Remote) && c.State.Remote != "" {
		return c.State.Remote
	}
	if f.Job != nil {
		return "origin"
	}
	r, err := wire.Dial(loc.URL, wire.DialOptions{Env: f.Environ})
	if err != nil {
		return "<remote>"
	}
	return text.ShellWord(r.URL()) // without credentials
}
