package gitcas

import (
	"fmt"
	"strings"
)

// Names of refs. Everything but the branches lies outside of refs/heads, so that
// it starts no CI and shows up in no list of branches.
const (
	storeRef       = "refs/uwf/store"
	claimFolder    = "refs/uwf/claims/"
	attemptFolder  = "refs/uwf/attempts/"
	workFolder     = "uwf"
	headsFolder    = "refs/heads/"
	maxRunInRef    = 100
	emptyRunInRef  = "unnamed"
	replacementInR = '-'
)

// StoreRef is the ref that marks the store: it points to the last state commit
// that uwf wrote.
const StoreRef = storeRef

// AttemptFolder is the folder of all attempts, with a slash at its end.
const AttemptFolder = attemptFolder

// ClaimRef is the ref that holds a thread's claim.
func ClaimRef(id ThreadID) string { return claimFolder + string(id) }

// WorkBranch is the short name of a thread's own work branch.
func WorkBranch(id ThreadID) string { return workFolder + "/" + string(id) }

// AttemptRefPrefix is the folder of a thread's attempts, with a slash at its end.
func AttemptRefPrefix(id ThreadID) string { return attemptFolder + string(id) + "/" }

// AttemptRef is the ref of one try at a step. Characters of run that a ref can't
// hold become dashes.
func AttemptRef(id ThreadID, run string, attempt int) string {
	return fmt.Sprintf("%s%s.%d", AttemptRefPrefix(id), refSafe(run), attempt)
}

func refSafe(run string) string {
	if len(run) > maxRunInRef {
		run = run[:maxRunInRef]
	}
	s := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || r == '-' || r == '_') {
			return r
		}
		return replacementInR
	}, run)
	if s == "" {
		return emptyRunInRef
	}
	return s
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
