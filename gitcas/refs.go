package gitcas

import (
	"cmp"
	"fmt"
	"strings"
)

// Names of refs. Everything but the branches lies outside of refs/heads, so that
// it starts no CI and shows up in no list of branches.
const (
	// StoreRef is the ref that marks the store: it points to the last state commit
	// that uwf wrote.
	StoreRef = "refs/uwf/store"
	// AttemptFolder is the folder of all attempts, with a slash at its end.
	AttemptFolder = "refs/uwf/attempts/"

	claimFolder = "refs/uwf/claims/"
	workFolder  = "uwf"
	headsFolder = "refs/heads/"
)

// ClaimRef is the ref that holds a thread's claim.
func ClaimRef(id ThreadID) string { return claimFolder + string(id) }

// WorkBranch is the short name of a thread's own work branch.
func WorkBranch(id ThreadID) string { return workFolder + "/" + string(id) }

// AttemptRefPrefix is the folder of a thread's attempts, with a slash at its end.
func AttemptRefPrefix(id ThreadID) string { return AttemptFolder + string(id) + "/" }

// AttemptRef is the ref of one try at a step. Characters of run that a ref can't
// hold become dashes.
func AttemptRef(id ThreadID, run string, attempt int) string {
	return fmt.Sprintf("%s%s.%d", AttemptRefPrefix(id), refSafe(run), attempt)
}

func refSafe(run string) string { return safeName(run, 100, "-_", "unnamed") }

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

// threadOfRef is the thread that a claim's or attempt's ref is for.
func threadOfRef(name, folder string) (ThreadID, bool) {
	rest, ok := strings.CutPrefix(name, folder)
	if !ok {
		return "", false
	}
	id, _, _ := strings.Cut(rest, "/")
	return ThreadID(id), ThreadID(id).Valid()
}
