package checks

import (
	"slices"

	"github.com/united-workforce/uwf/gitcas/record"
)

// Result is what a check said last in a thread, and on the work of which step.
type Result struct {
	Step int    `json:"step"` // its number, from 1
	Role string `json:"role"`
	record.Check
}

// Latest gives the last result of each check of a thread, ordered by step. of reads the role and
// the checks of one of its steps.
func Latest[S any](steps []S, of func(S) (role string, all []record.Check)) []Result {
	var out []Result
	newer := map[string]bool{}
	for i, s := range slices.Backward(steps) {
		role, all := of(s)
		for _, c := range slices.Backward(all) {
			if !newer[c.Name] {
				out = append(out, Result{i + 1, role, c})
			}
			newer[c.Name] = true
		}
	}
	slices.Reverse(out)
	return out
}

// Unproven leaves of results those of checks that did not pass.
func Unproven(all []Result) []Result {
	return slices.DeleteFunc(slices.Clone(all), func(r Result) bool { return r.Status == record.CheckPassed })
}
