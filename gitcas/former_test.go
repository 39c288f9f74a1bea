package gitcas

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/gitcas/view"
)

const (
	former1 node.Hash = "0123456789ABC"
	former2 node.Hash = "1234567890123"
)

// formerOf are lists for the two threads of a vandal and for its workflow.
func formerOf(x *vandal) map[string][]Former {
	x.t.Helper()
	c, err := x.v.ReadChain(x.t.Context(), threadID(1))
	if err != nil {
		x.t.Fatal(err)
	}
	flow := workflowNode(x.t).Hash
	return map[string][]Former{
		layout.FormerName(threadID(1)): {{Former: former1, Hash: c.StartHash}, {Former: former2, Hash: c.Steps[1].Output}},
		layout.FormerName(threadID(2)): {{Former: former2, Hash: startChange(x.t, threadID(2), "x").Nodes[2].Hash}, {Former: "2222222222222", Hash: flow}},
		layout.FormerName(flow):        {{Former: former1, Hash: flow}, {Former: former2, Hash: node.String}},
	}
}

// TestFormer: lists of former hashes are kept, also when their threads end.
func TestFormer(t *testing.T) {
	x := newVandal(t)
	lists := formerOf(x)
	v := mustPush(t, x.s, x.v, &Change{Subject: "import", Former: lists})
	mustSound(t, x.s)
	for range 2 {
		for h, want := range map[node.Hash]string{former1: "[{%s %s} {%s }]", former2: "[{%s %s} {%s %s} {%s }]", "0000000000000": "[]"} {
			names, err := view.FindFormer(t.Context(), v, h)
			args := map[node.Hash][]any{
				former1: {lists[layout.FormerName(threadID(1))][0].Hash, threadID(1), workflowNode(t).Hash},
				former2: {lists[layout.FormerName(threadID(1))][1].Hash, threadID(1), lists[layout.FormerName(threadID(2))][0].Hash, threadID(2), node.String},
			}[h]
			if got := fmt.Sprint(names); err != nil || got != fmt.Sprintf(want, args...) {
				t.Errorf("%s: %s, %v", h, got, err)
			}
		}
		if e, alive := v.Entry(threadID(1)); alive {
			v = mustPush(t, x.s, mustLoad(t, x.s, threadID(1)), &Change{Subject: "cancel", Archive: []Ended{{Thread: threadID(1), Head: e.Head, Reason: ReasonCancelled, CompletedAt: 1_700_000_000_000}}})
			mustSound(t, x.s)
		}
	}
}

// TestFormerRefused: lists that could not be read are not written.
func TestFormerRefused(t *testing.T) {
	for name, lists := range map[string]map[string][]Former{
		"a name":   {"x.jsonl": nil},
		"a path":   {"../" + layout.FormerName(threadID(1)): nil},
		"no hash":  {layout.FormerName(threadID(1)): {{Former: "x", Hash: former1}}},
		"unsorted": {layout.FormerName(threadID(1)): {{Former: former2, Hash: former1}, {Former: former1, Hash: former1}}},
	} {
		x := newVandal(t)
		if _, err := x.s.Push(t.Context(), x.v, &Change{Subject: "import", Former: lists}); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFsckFormer: lists that lie.
func TestFsckFormer(t *testing.T) {
	one, two, flow := layout.FormerName(threadID(1)), layout.FormerName(threadID(2)), layout.FormerName(workflowNode(t).Hash)
	for name, tc := range map[string]struct {
		file, text string
		history    bool // it is seen with the history alone
		want       string
	}{
		"a node that a live thread has not":     {one, `{"former":"0123456789ABC","hash":"0000000000000"}` + "\n", false, "{former/" + one + " 0123456789ABC is called 0000000000000, which is missing}"},
		"a node that an ended thread has not":   {two, `{"former":"0123456789ABC","hash":"0000000000000"}` + "\n", true, "{former/" + two + " 0123456789ABC is called 0000000000000, which is missing}"},
		"a node that cas/ has not":              {flow, `{"former":"0123456789ABC","hash":"0000000000000"}` + "\n", false, "{former/" + flow + " 0123456789ABC is called 0000000000000, which is missing}"},
		"the list of a live thread is garbage":  {one, "x\n", false, "{former/" + one + " malformed"},
		"the list of an ended thread is, too":   {two, "{}\n", false, "{former/" + two + " malformed: line 1"},
		"that of a workflow is":                 {flow, "[]\n", false, "{former/" + flow + " malformed: line 1"},
		"a list is too large":                   {flow, strings.Repeat("\n", statefile.MaxFormerFile+1), false, "{former/" + flow + " 33554433 bytes"},
		"a thread that the store never had":     {layout.FormerName(threadID(3)), "", false, "there is no such thread"},
		"a file that is no list":                {"hello.jsonl", "", false, "a foreign file"},
		"a list of which nothing is left":       {two, "", false, ""},
		"a node that every uwf knows":           {two, `{"former":"0123456789ABC","hash":"7VQ43ZSJTEWA7"}` + "\n", false, ""},
		"a node that is shared with the thread": {two, `{"former":"0123456789ABC","hash":"` + string(workflowNode(t).Hash) + `"}` + "\n", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			x := newVandal(t)
			x.v = mustPush(t, x.s, x.v, &Change{Subject: "import", Former: formerOf(x)})
			x.replace(layout.FormerDir+"/"+tc.file, func([]byte) []byte { return []byte(tc.text) })
			for _, history := range []bool{false, true} {
				r, err := x.s.Fsck(t.Context(), history)
				if err != nil {
					t.Fatal(err)
				}
				want := tc.want
				if tc.history && !history {
					want = ""
				}
				if got := fmt.Sprint(r.Problems); (want == "") != r.OK() || !strings.Contains(got, want) {
					t.Errorf("fsck, with the history %v, sees %s", history, got)
				}
			}
			v := mustLoadTip(x)
			_, err := view.FindFormer(t.Context(), v, former2)
			if bad := strings.Contains(tc.want, "malformed") || strings.Contains(tc.want, "foreign") || strings.Contains(tc.want, "bytes"); bad != errors.Is(err, ErrContent) {
				t.Errorf("a look-up: %v", err)
			}
		})
	}
}
