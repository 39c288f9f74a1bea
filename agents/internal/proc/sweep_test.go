package proc

import (
	"slices"
	"testing"
)

// We are process 100 of session 50; the group's leader is 200, started at 10.
func TestSelection(t *testing.T) {
	const ours = 50
	tests := []struct {
		name   string
		table  []process
		marks  map[int]string
		reaped bool
		others bool // there are other groups
		want   []int
	}{
		{name: "the leader and its children", table: []process{
			{200, 100, 200, 200, 10}, {201, 200, 200, 200, 11}, {202, 201, 202, 202, 12}, {203, 202, 202, 202, 13},
		}, want: []int{200, 201, 202, 203}},
		{name: "our own children", table: []process{
			{200, 100, 200, 200, 10}, {300, 100, 50, ours, 20}, {301, 300, 50, ours, 20},
		}, want: []int{200}},
		{name: "an orphan of the leader's session", table: []process{
			{201, 100, 200, 200, 11},
		}, reaped: true, want: []int{201}},
		{name: "an orphan of another session, by its mark", table: []process{
			{201, 100, 201, 201, 11},
		}, marks: map[int]string{201: "me/inner"}, reaped: true, others: true, want: []int{201}},
		{name: "an orphan without mark, when there is no other group", table: []process{
			{201, 100, 201, 201, 11}, {202, 201, 201, 201, 12},
		}, reaped: true, want: []int{201, 202}},
		{name: "an orphan without mark, when there is another group", table: []process{
			{201, 100, 201, 201, 11},
		}, reaped: true, others: true},
		{name: "another group, its children and its orphans", table: []process{
			{200, 100, 200, 200, 10}, {400, 100, 400, 400, 10}, {401, 400, 400, 400, 11}, {402, 100, 402, 402, 12},
		}, marks: map[int]string{402: "other"}, others: true, want: []int{200}},
		{name: "another group's leader that wiped its environment", table: []process{
			{400, 100, 400, 400, 12},
		}, reaped: true, others: true},
		{name: "a mark that only begins like ours, when there is another group", table: []process{
			{201, 100, 201, 201, 11},
		}, marks: map[int]string{201: "mean"}, reaped: true, others: true},
		{name: "a mark of its own making, when there is no other group", table: []process{
			{201, 100, 201, 201, 11}, {202, 100, 202, 202, 11},
		}, marks: map[int]string{201: "mean", 202: "forged"}, reaped: true, want: []int{201, 202}},
		{name: "another runner's", table: []process{
			{201, 100, 201, 201, 11}, {202, 100, 202, 202, 11},
		}, marks: map[int]string{201: "other", 202: "other/inner"}, reaped: true},
		{name: "a process that is older than the leader", table: []process{
			{201, 100, 201, 201, 9},
		}, reaped: true},
		{name: "somebody with the reaped leader's number", table: []process{
			{200, 1, 7, 7, 99},
		}, reaped: true},
		{name: "nobody's business", table: []process{
			{1, 0, 1, 1, 1}, {100, 60, 50, ours, 5}, {500, 1, 500, 500, 50},
		}, reaped: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := &group{mark: "me", leader: 200, started: 10, done: make(chan struct{}), sessions: map[int]struct{}{200: {}}}
			if tt.reaped {
				close(g.done)
			}
			s := selection{
				g: g, table: tt.table, self: 100, session: ours, alone: !tt.others,
				markOf:  func(pid int) string { return tt.marks[pid] },
				running: func(mark string) bool { return isBelow(mark, "other") },
			}
			if got := listPIDs(s.selectOwned()); !slices.Equal(got, tt.want) {
				t.Errorf("selected %v, want %v", got, tt.want)
			}
		})
	}
}
