package lists_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/united-workforce/uwf/internal/lists"
)

func TestMap(t *testing.T) {
	if got := lists.Map([]int{3, 1}, strconv.Itoa); !slices.Equal(got, []string{"3", "1"}) {
		t.Error(got)
	}
	if got := lists.Map([]int(nil), strconv.Itoa); got == nil || len(got) != 0 { // JSON writes []
		t.Error(got)
	}
}

func TestFilter(t *testing.T) {
	odd := func(n int) bool { return n%2 == 1 }
	if got := lists.Filter([]int{3, 2, 1}, odd); !slices.Equal(got, []int{3, 1}) {
		t.Error(got)
	}
	if got := lists.Filter([]int{2}, odd); got != nil { // JSON leaves it out
		t.Error(got)
	}
}
