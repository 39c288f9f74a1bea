package moderator

import (
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/record"
)

// Approval is what speaks for a step's being what a person approved.
type Approval struct {
	// Asked says that the step before asked a person, and that this one has the answer.
	Asked bool
	// Words are the answer.
	Words []record.Word
	// Starters are who started the thread, or forked it, as far as that is known.
	Starters []record.By
	// Author wrote the issue or pull request that it is about; nil: nobody did, or, where
	// it is Authored, nobody knows who.
	Author   *record.By
	Authored bool
}

// Approve checks that the edge which a decision took was open: only a person's approval
// may open it.
func Approve(d Decision, a Approval) error {
	if d.Edge.Approval == nil {
		return nil
	}
	if why := a.Refusal(d.Edge.Approval.Not); why != "" {
		return fmt.Errorf("role %s may decide %s only after a person's approval, and there is none: %s", d.From, d.Result(), why)
	}
	return nil
}

// Refusal says why there is no approval; empty: there is one. All that was said must
// come from people who may approve, so that nobody adds a condition to somebody else's
// yes. not is who must not be one of them, as an edge's Approval has it.
func (a Approval) Refusal(not []string) string {
	if !a.Asked {
		return "nobody was asked"
	}
	said := false
	for _, w := range a.Words {
		if strings.TrimSpace(w.Text) == "" && w.Do != record.DoPoke {
			continue // it was only let go on
		}
		said = said || w.Do != record.DoPoke
		if why := a.refusedFor(w.By, not); why != "" {
			return why
		}
	}
	if !said {
		return "nobody has answered"
	}
	return ""
}

// refusedFor says why one person's word is no approval.
func (a Approval) refusedFor(by *record.By, not []string) string {
	switch {
	case by == nil:
		return "nobody knows who answered"
	case by.Kind == record.ByBot:
		return by.String() + " answered, and only a person can approve"
	case by.Kind != record.ByForge:
		return by.String() + ", answered, and the forge doesn't confirm who that is"
	}
	if slices.Contains(not, workflow.ApprovalStarter) {
		if len(a.Starters) == 0 {
			return "it takes somebody else than who started the thread, and nobody knows who that was"
		}
		if why := otherThan(*by, a.Starters, "started the thread"); why != "" {
			return why
		}
	}
	switch {
	case !slices.Contains(not, workflow.ApprovalAuthor), a.Author == nil && !a.Authored:
	case a.Author == nil:
		return "it takes somebody else than who wrote what it is about, and nobody knows who that was"
	default:
		return otherThan(*by, []record.By{*a.Author}, "wrote what it is about")
	}
	return ""
}

// otherThan says why somebody is not surely another one than some others.
func otherThan(by record.By, others []record.By, did string) string {
	for _, o := range others {
		switch same, known := by.Same(o); {
		case o.Kind == record.ByBot:
			return fmt.Sprintf("it takes somebody else than who %s, and that was %s: nobody knows for whom", did, o)
		case !known:
			return fmt.Sprintf("it takes somebody else than who %s, and of that person only a name is known: %s", did, o)
		case same:
			return fmt.Sprintf("it takes somebody else than who %s: %s", did, by)
		}
	}
	return ""
}
