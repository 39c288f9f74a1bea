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
