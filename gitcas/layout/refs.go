package layout

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Names of refs. Everything but the branches lies outside of refs/heads, so that it starts
// no CI and shows up in no list of branches. Folders have a slash at their end.
const (
	Heads = "refs/heads/"
	// Refs is the folder of all refs that are uwf's own.
	Refs = "refs/uwf/"
	// StoreRef marks the store: it points to the last state commit that uwf wrote.
	StoreRef = Refs + "store"
	// Claims and Attempts hold what jobs have beside the state branch.
	Claims   = Refs + "claims/"
	Attempts = Refs + "attempts/"
	// Trials holds the refs that uwf doctor makes and removes again.
	Trials = Refs + "doctor/"
	// WorkBranches is where the work branches are, below Heads.
	WorkBranches = "uwf/"
)

// ClaimRef is the ref that holds a thread's claim.
func ClaimRef(id ThreadID) string { return Claims + string(id) }

// WorkBranch is the short name of a thread's own work branch.
func WorkBranch(id ThreadID) string { return WorkBranches + string(id) }

// AttemptRefs is the folder of a thread's attempts.
func AttemptRefs(id ThreadID) string { return Attempts + string(id) + "/" }

// AttemptRef is the ref of one try at a step. Characters of run that a ref can't
// hold become dashes.
func AttemptRef(id ThreadID, run string, attempt int) string {
	return fmt.Sprintf("%s%s.%d", AttemptRefs(id), safeName(run, 100, "-_", "unnamed"), attempt)
}

// safeName is a text as a part of a ref or path: at most so many bytes of letters, digits and
// the marks that are named, others as dashes; empty: the name for none.
func safeName(text string, most int, marks, none string) string {
	s := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune(marks, r)) {
			return r
		}
		return '-'
	}, text[:min(len(text), most)])
	return cmp.Or(s, none)
}

// RefKind is what a ref below Refs is for.
type RefKind string

// The kinds of refs.
const (
	ClaimKind   RefKind = "claim"
	AttemptKind RefKind = "attempt"
	TrialKind   RefKind = "trial"
	OtherKind   RefKind = "ref"
)

// RefFolders are the folders below Refs, with the kind of ref that each holds. What is kept
// there must be known to package sweep, which says when it may go, and to package rewrite
// where it may hold what people wrote; docs/protocol.md names each.
func RefFolders() map[string]RefKind {
	return map[string]RefKind{Claims: ClaimKind, Attempts: AttemptKind, Trials: TrialKind}
}

// Ref is the name of a ref, taken apart.
type Ref struct {
	Kind RefKind
	// Thread is whose claim or attempt it is; empty where the name says no thread.
	Thread ThreadID
	// Run and Attempt are those of an attempt; Run is empty where the name doesn't say.
	Run     string
	Attempt int
}

// ParseRef takes the name of a ref apart.
func ParseRef(name string) Ref {
	if rest, ok := strings.CutPrefix(name, Claims); ok {
		return Ref{Kind: ClaimKind, Thread: validOrNone(rest)}
	}
	if rest, ok := strings.CutPrefix(name, Attempts); ok {
		id, try, _ := strings.Cut(rest, "/")
		r := Ref{Kind: AttemptKind, Thread: validOrNone(id)}
		dot := max(strings.LastIndexByte(try, '.'), 0)
		if n, ok := parseNumber(strings.TrimPrefix(try[dot:], ".")); ok && dot > 0 && r.Thread != "" {
			r.Run, r.Attempt = try[:dot], n
		}
		return r
	}
	if strings.HasPrefix(name, Trials) {
		return Ref{Kind: TrialKind}
	}
	return Ref{Kind: OtherKind}
}

func validOrNone(id string) ThreadID {
	if !ThreadID(id).Valid() {
		return ""
	}
	return ThreadID(id)
}

// parseNumber reads a whole number from 0 on.
func parseNumber(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0
}
