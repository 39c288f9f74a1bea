package purge

import (
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/rewrite"
	"github.com/united-workforce/uwf/internal/lists"
)

// result is what is printed: the plan, and what was done of it.
type result struct {
	DryRun   bool             `json:"dryRun"`
	Purged   bool             `json:"purged"` // the state branch was rewritten
	Tip      change           `json:"tip"`
	Commits  commits          `json:"commits"`
	Nodes    nodes            `json:"nodes"`
	Found    []rewrite.Place  `json:"found"`
	Left     []rewrite.Place  `json:"left"` // names that hold it and stay
	Threads  []rewrite.Thread `json:"threads"`
	Attempts []string         `json:"attempts"` // refs that are rewritten
	Claims   []string         `json:"claims"`   // threads whose claims are deleted
	Branches []branchHit      `json:"branches"` // people's: for them to rewrite
	Local    []leftover       `json:"local"`
	Next     []string         `json:"next"` // what is left to do
}

type change struct {
	Old string `json:"old"`
	New string `json:"new"`
}

type commits struct {
	Total     int `json:"total"`
	Rewritten int `json:"rewritten"`
}

type nodes struct {
	Purged   int         `json:"purged"`
	Rehashed int         `json:"rehashed"` // they only refer to such
	Named    []node.Hash `json:"named"`
}

type branchHit struct {
	Branch string `json:"branch"`
	Commit string `json:"commit"`
	Path   string `json:"path,omitempty"` // empty: the commit's message
}

// leftover is a file or folder of this machine.
type leftover struct {
	Path   string `json:"path"`
	Remove bool   `json:"remove"`
	Why    string `json:"why"`

	real  string // the path as it is: it may hold what is looked for
	image bool   // it holds images of workspaces
}

// takePlan takes over a plan.
func (r *result) takePlan(p *rewrite.Plan) {
	r.Tip = change{p.Old.String(), p.New.String()}
	r.Commits = commits{p.Commits, p.Changed}
	r.Nodes = nodes{p.Purged, p.Rehashed, append([]node.Hash{}, p.Nodes...)}
	r.Found, r.Left = append([]rewrite.Place{}, p.Found...), append([]rewrite.Place{}, p.Left...)
	r.Threads = append([]rewrite.Thread{}, p.Threads...)
	r.Attempts = lists.Map(p.Attempts, func(a rewrite.Attempt) string { return a.Ref })
}

// changesStore reports whether the store changes.
func (r *result) changesStore() bool { return r.Tip.Old != r.Tip.New || len(r.Attempts) > 0 }

// isEmpty reports whether it stands nowhere.
func (r *result) isEmpty() bool {
	return !r.changesStore() && len(r.Branches) == 0 && len(r.Local) == 0 && len(r.Left) == 0
}

// listed is how many places of one kind the text form names.
const listed = 20

func (r *result) writeText(w *output.Writer) {
	if r.isEmpty() {
		w.Println("nothing found")
		r.writeLeft(w)
		return
	}
	if r.changesStore() {
		w.Bold("state branch")
		w.Printf(": %d of %d commits, nodes with it: %d, nodes that refer to these: %d\n", r.Commits.Rewritten, r.Commits.Total, r.Nodes.Purged, r.Nodes.Rehashed)
		w.Printf("  tip %s → %s\n", r.Tip.Old, r.Tip.New)
	}
	writeSection(w, "found in", r.Found, describePlace)
	writeSection(w, "stays in names", r.Left, describePlace)
	writeSection(w, "heads that change", r.Threads, func(h rewrite.Thread) string {
		s := fmt.Sprintf("%s  %s → %s", h.ID, h.Old, h.New)
		if h.Ended {
			s += "  (ended)"
		}
		return s
	})
	writeSection(w, "attempts", r.Attempts, func(s string) string { return s })
	writeSection(w, "claims that are deleted", r.Claims, func(s string) string { return s })
	writeSection(w, "people's branches (not touched)", r.Branches, func(h branchHit) string {
		if h.Path == "" {
			return fmt.Sprintf("%s  %.10s  (the commit's message)", h.Branch, h.Commit)
		}
		return fmt.Sprintf("%s  %.10s  %s", h.Branch, h.Commit, h.Path)
	})
	writeSection(w, "on this machine", r.Local, func(l leftover) string {
		verb := "stays"
		if l.Remove {
			verb = "goes"
		}
		return fmt.Sprintf("%s  %s: %s", l.Path, verb, l.Why)
	})
	if r.Purged {
		w.Good("purged")
		w.Println()
	}
	r.writeLeft(w)
}

func (r *result) writeLeft(w *output.Writer) {
	if len(r.Next) == 0 {
		return
	}
	w.Bold("what is left to do")
	w.Println()
	for i, s := range r.Next {
		w.Printf("%2d. %s\n", i+1, s)
	}
}

func describePlace(p rewrite.Place) string { return strings.TrimSpace(p.Path + "  " + p.At) }

func writeSection[T any](w *output.Writer, title string, list []T, line func(T) string) {
	if len(list) == 0 {
		return
	}
	w.Bold(title)
	w.Println()
	for i, x := range list {
		if i == listed {
			w.Printf("  and %d more\n", len(list)-i)
			break
		}
		w.Printf("  %s\n", line(x))
	}
}
