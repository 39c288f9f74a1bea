// Package cas is `uwf cas`: looking at nodes, checking them and adding shared
// ones. It never touches a thread's chain.
package cas

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/lookup"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
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
  uwf cas walk 9W3MGR3184QYE`,
	},
		NewCmdGet(f, nil), NewCmdPut(f, nil), NewCmdHas(f, nil), NewCmdRefs(f, nil),
		NewCmdWalk(f, nil), NewCmdVerify(f, nil), NewCmdHash(f, nil), NewCmdSchema(f),
	)
}

// names are the types that have a name besides their hash: those that every store
// has.
func names() map[string]node.Hash {
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
	if h, ok := names()[s]; ok {
		return h, nil
	}
	h, err := node.ParseHash(s)
	if err != nil {
		return "", app.Usagef("the type %q is neither a hash nor one of %v", s, slices.Sorted(maps.Keys(names())))
	}
	return h, nil
}

// parseHash reads a HASH argument.
func parseHash(s string) (node.Hash, error) {
	h, err := node.ParseHash(s)
	if err != nil {
		return "", app.Usagef("%w", err)
	}
	return h, nil
}

// nodes finds nodes wherever they are: in cas/, in live threads, in ended ones.
// It remembers where the last one was, as the next is mostly there too.
type nodes struct {
	ctx   context.Context
	store *gitcas.Store
	tip   *gitcas.View // the branch as it is
	view  *gitcas.View // with the thread that the last search ended in
	place gitcas.Place // of what the last search found
	known map[node.Hash]node.Node
}

// source says where a command looks for nodes.
type source struct {
	Store  func(context.Context) (*gitcas.Store, error)
	Thread string // also among the details of this thread; empty: none
}

// flags adds --thread to a command.
func (s *source) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.Thread, "thread", "", "look among the details of this thread (`ID`) too")
}

// open makes the nodes findable. Nodes that every uwf knows are found without a store, so a
// missing one is no error yet.
func (s *source) open(ctx context.Context) (*nodes, error) {
	l := &nodes{ctx: ctx, known: node.Builtin()}
	maps.Copy(l.known, record.Schemas())
	store, err := s.Store(ctx)
	if err == nil {
		l.tip, err = store.Load(ctx)
	}
	switch {
	case errors.Is(err, gitcas.ErrNoStore) && s.Thread == "":
		return l, nil
	case err != nil:
		return nil, err
	}
	l.store, l.view = store, l.tip
	if s.Thread == "" {
		return l, nil
	}
	return l, l.enter(s.Thread)
}

// enter makes a thread the place to look in first, also when it has ended.
func (l *nodes) enter(arg string) error {
	ref, err := lookup.Parse(arg)
	if err != nil {
		return err
	}
	t, err := ref.Find(l.ctx, l.store)
	if err != nil {
		return err
	}
	l.view, l.place = t.View, gitcas.Place{Thread: t.ID}
	return nil
}

// Get implements node.Getter.
func (l *nodes) Get(h node.Hash) (node.Node, error) {
	if n, ok := l.known[h]; ok {
		return n, nil
	}
	if l.store == nil {
		return node.Node{}, node.ErrNotFound
	}
	n, err := l.view.Get(l.ctx, h)
	if err == nil || !errors.Is(err, node.ErrNotFound) {
		return n, err
	}
	if l.place.Thread != "" {
		n, err = l.store.Detail(l.ctx, l.view, l.place.Thread, h)
		if err == nil || !errors.Is(err, node.ErrNotFound) {
			return n, err
		}
	}
	found, err := l.store.Find(l.ctx, l.tip, h)
	if err != nil {
		return node.Node{}, err
	}
	return found.Node, l.moveTo(found)
}

// moveTo makes the view one of the thread that a node was found in, so that the
// nodes around it need no search.
func (l *nodes) moveTo(found gitcas.Found) error {
	if found.Place.Thread == "" || found.Place.Thread == l.place.Thread {
		return nil
	}
	var v *gitcas.View
	var err error
	if found.Ended != nil {
		v, err = l.store.LoadEnded(l.ctx, l.tip, *found.Ended)
	} else {
		v, err = l.store.Reload(l.ctx, l.tip, found.Place.Thread)
	}
	if err != nil {
		return err
	}
	l.view, l.place = v, found.Place
	return nil
}

// get is Get with an error that suggests what may have been meant.
func (l *nodes) get(h node.Hash) (node.Node, error) {
	n, err := l.Get(h)
	if errors.Is(err, node.ErrNotFound) {
		e := &app.UnknownError{What: "node", ID: string(h), Near: app.Near(string(h), l.hashes())}
		if l.place.Thread == "" {
			e.Hint = "details, and the outputs of ended threads, are found with --thread ID"
		}
		return n, e
	}
	return n, err
}

// hashes are those that are known without reading the whole store.
func (l *nodes) hashes() []string {
	var out []string
	for h := range l.known {
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
