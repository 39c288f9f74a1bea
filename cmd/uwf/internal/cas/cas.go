// Package cas is `uwf cas`: looking at nodes, checking them and adding shared
// ones. It never touches a thread's chain.
package cas

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/view"
)

// NewCmdCas makes `uwf cas`.
func NewCmdCas(f *app.Factory) *cobra.Command {
	return app.Group(&cobra.Command{
		Use:   "cas",
		Short: "Look at nodes, check them and add shared ones",
		Long: `Look at nodes, check them and add shared ones.

A node is an immutable record {type, payload, timestamp}. Its address is a hash of
type and payload; its type is the address of its JSON schema.`,
		Example: `  uwf cas get 7VQ43ZSJTEWA7
  echo '{"type":"object"}' | uwf cas put schema
  uwf cas verify --deep 9W3MGR3184QYE`,
	},
		NewCmdGet(f, nil), NewCmdPut(f, nil), NewCmdVerify(f, nil),
	)
}

// namedTypes are the types that have a name besides their hash: those that every store
// has.
func namedTypes() map[string]node.Hash {
	out := map[string]node.Hash{"schema": node.MetaSchema}
	for h, n := range node.Builtin() {
		m, _ := n.Payload.(map[string]any)
		if t, ok := m["type"].(string); ok && h != node.MetaSchema {
			out[t] = h
		}
	}
	return out
}

// parseType reads a TYPE argument: a hash, or one of names.
func parseType(s string) (node.Hash, error) {
	if h, ok := namedTypes()[s]; ok {
		return h, nil
	}
	h, err := node.ReadHash(s)
	if err != nil {
		return "", app.Usagef("the type %q is neither a hash nor one of %v", s, slices.Sorted(maps.Keys(namedTypes())))
	}
	return h, nil
}

// nodes finds nodes: in the place that was named, else wherever they are.
type nodes struct {
	ctx   context.Context
	notes *output.Writer
	store *gitcas.Store // nil: there is none
	tip   *gitcas.View  // the branch as it is
	in    *place        // where to look; nil: everywhere
}

// place is the thread, or the step of one, that a hash is looked up in.
type place struct {
	view *gitcas.View
	id   gitcas.ThreadID
	step node.Hash // empty: all of the thread
}

// LookOptions are what the commands work with that look for a node.
type LookOptions struct {
	Factory *app.Factory
	Where   string // THREAD or THREAD:N; empty: everywhere
	Hash    string
}

// newLookCmd makes a command that looks for a node. A runF that is not nil replaces the run.
func newLookCmd(f *app.Factory, verb, short, long string, examples []string, run, runF func(context.Context, *LookOptions) error) *cobra.Command {
	o := &LookOptions{Factory: f}
	return &cobra.Command{
		Use: verb + " [THREAD[:N]] HASH", Short: short, Long: long + "\n\n" + whereHelp,
		Example: "  uwf cas " + verb + " " + strings.Join(examples, "\n  uwf cas "+verb+" "),
		Args:    cobra.RangeArgs(1, 2),
		RunE: app.Run(o, runF, run, func(args []string) {
			o.Hash = args[len(args)-1]
			if len(args) > 1 {
				o.Where = args[0]
			}
		}),
	}
}

// whereHelp is what the commands' help says of their first argument.
const whereHelp = `A hash is looked up among the shared nodes, in all live threads, and among the steps of
ended ones. With THREAD, or THREAD:N, it is looked up there alone: in all of a thread, or
in what its step N refers to. That decides where one hash names several nodes: a hash
has 64 bits, and who chooses a text can choose its hash. A node that uwf-import had to give
another hash is found by the one that it had, too; stderr says what it is called here.`

// openHash returns the hash that was named, and the nodes to look for it in. Nodes that every uwf
// knows are found without a store, so a missing one is no error yet.
func (o *LookOptions) openHash(ctx context.Context) (node.Hash, *nodes, error) {
	h, err := node.ReadHash(o.Hash)
	if err != nil {
		return "", nil, app.Usagef("%w", err)
	}
	l := &nodes{ctx: ctx, notes: o.Factory.Notes()}
	l.store, l.tip, err = lookup.Load(ctx, o.Factory.Store)
	if errors.Is(err, gitcas.ErrNoStore) && o.Where == "" {
		l.store, l.tip, err = nil, nil, nil
	}
	if err == nil && o.Where != "" {
		err = l.enterThread(o.Where)
	}
	return h, l, err
}

// enterThread makes a thread, or one of its steps, the place to look in, also when it has
// ended.
func (l *nodes) enterThread(arg string) error {
	if strings.Contains(arg, ":") {
		ref, err := lookup.ParseStep(arg)
		if err != nil {
			return err
		}
		s, err := ref.LocateStep(l.ctx, l.store)
		if err != nil {
			return err
		}
		l.in = &place{s.View, s.ID, s.Node().Hash}
		return nil
	}
	ref, err := lookup.Parse(arg)
	if err != nil {
		return err
	}
	t, err := ref.FindThread(l.ctx, l.store)
	if err != nil {
		return err
	}
	l.in = &place{view: t.View, id: t.ID}
	return nil
}

// found is a node, where it was found, and the view that has it.
type found struct {
	gitcas.Found
	view *gitcas.View // nil: it is built in
}

// getterIn finds the nodes of a place.
func (f found) getterIn(ctx context.Context, at gitcas.Place) node.Getter {
	if f.view == nil {
		return gitcas.Nodes{}.In(at)
	}
	return f.view.In(ctx, at)
}

// findNode finds a node, also by the hash that it had where it was imported from; one that
// is nowhere is node.ErrNotFound.
func (l *nodes) findNode(h node.Hash) (found, error) {
	f, err := l.findHash(h)
	if l.tip == nil || !errors.Is(err, node.ErrNotFound) {
		return f, err
	}
	names, former := view.FindFormer(l.ctx, l.tip, h)
	if former != nil {
		return f, former
	}
	if i := slices.IndexFunc(names, func(n view.Renamed) bool { return n.Hash != names[0].Hash }); i > 0 {
		return f, app.Usagef("%s was the hash of different nodes where they were imported from; they are called %s and %s here: name one of these", h, names[0].Hash, names[i].Hash)
	}
	for _, n := range names {
		now, failed := l.findRenamed(n)
		switch {
		case failed == nil:
			l.notes.Printf("%s is called %s here\n", h, n.Hash)
			return now, nil
		case !errors.Is(failed, node.ErrNotFound) && !errors.As(failed, new(*app.UnknownError)): // its thread was removed
			return now, failed
		}
	}
	return f, err
}

// findRenamed finds a node by what a list of former hashes says of it: also where the list's
// thread has ended.
func (l *nodes) findRenamed(n view.Renamed) (found, error) {
	in := *l
	f, err := in.findHash(n.Hash)
	if !errors.Is(err, node.ErrNotFound) || l.in != nil || n.Thread == "" {
		return f, err
	}
	if err := in.enterThread(string(n.Thread)); err != nil {
		return f, err
	}
	return in.findHash(n.Hash)
}

// findHash is findNode for the hash that a node has here.
func (l *nodes) findHash(h node.Hash) (found, error) {
	f := found{Found: gitcas.Found{Hash: h}, view: l.tip}
	var ok bool
	if f.Node, ok = view.Known(h); ok {
		return f, nil
	}
	var err error
	switch {
	case l.store == nil:
		return f, node.ErrNotFound
	case l.in == nil:
		f.Found, err = gitcas.Find(l.ctx, l.tip, h)
	case l.in.step == h:
		f.view, f.Place = l.in.view, gitcas.Place{Thread: l.in.id}
		f.Node, err = f.view.In(l.ctx, f.Place).Get(h)
	case l.in.step != "":
		f.view, f.Place = l.in.view, gitcas.Place{Thread: l.in.id, Of: l.in.step, Detail: true}
		f.Node, err = f.view.In(l.ctx, f.Place).Get(h)
	default:
		f.view = l.in.view
		f.Found, err = gitcas.FindIn(l.ctx, f.view, l.in.id, h)
	}
	if err == nil && f.Ended != nil {
		f.view, err = l.tip.LoadEnded(l.ctx, *f.Ended)
	}
	return f, err
}

// getNode is find with an error that suggests what may have been meant.
func (l *nodes) getNode(h node.Hash) (found, error) {
	f, err := l.findNode(h)
	var several *gitcas.AmbiguousError
	switch {
	case errors.As(err, &several):
		return f, app.Usagef("%w\nsay where the one that is meant is, by thread or by thread and step: THREAD:N %s", several, h)
	case errors.Is(err, node.ErrNotFound):
		e := &app.UnknownError{What: "node", ID: string(h), Near: app.SuggestNames(string(h), l.knownHashes())}
		if l.in == nil {
			e.Hint = "what an ended thread's steps refer to is found with the thread before it: THREAD " + string(h)
		}
		return f, e
	}
	return f, err
}

// knownHashes are those that are known without reading the whole store.
func (l *nodes) knownHashes() []string {
	var out []string
	for h := range record.Schemas() {
		out = append(out, string(h))
	}
	for h := range node.Builtin() {
		out = append(out, string(h))
	}
	if l.tip == nil {
		return out
	}
	for _, e := range l.tip.Threads() {
		out = append(out, string(e.Head), string(e.Workflow))
	}
	for _, e := range l.tip.Registry() {
		out = append(out, string(e.Hash))
	}
	return out
}
