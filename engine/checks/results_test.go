package checks_test

import (
	"reflect"
	"testing"

	"github.com/united-workforce/uwf/engine/checks"
	"github.com/united-workforce/uwf/gitcas/record"
)

// TestLatest: of each check the last result counts, in the order of steps, and one that passed
// later is no longer unproven.
func TestLatest(t *testing.T) {
	failed := func(name string) record.Check { return record.Check{Name: name, Status: record.CheckFailed} }
	passed := record.Check{Name: "test", Status: record.CheckPassed}
	steps := [][]record.Check{{failed("lint"), failed("test")}, nil, {passed, failed("e2e")}}
	got := checks.Latest(steps, func(all []record.Check) (string, []record.Check) { return "dev", all })
	want := []checks.Result{{1, "dev", failed("lint")}, {3, "dev", passed}, {3, "dev", failed("e2e")}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if left := checks.Unproven(got); len(left) != 2 || left[0].Name != "lint" || left[1].Name != "e2e" || len(got) != 3 {
		t.Errorf("%+v", left)
	}
}

// TestCutHead: an output that was cut is not cut again, and no bound is too small.
func TestCutHead(t *testing.T) {
	long := ""
	for range 100 {
		long += "a line\n"
	}
	for most := range 40 {
		once := checks.CutHead(long, most)
		if len(once) > max(most, len("…\n")) || most > 10 && checks.CutHead(once, most) != once {
			t.Errorf("%d: %q", most, once)
		}
	}
	if got := checks.CutHead("all of it\n\n", 40); got != "all of it" {
		t.Errorf("%q", got)
	}
}
