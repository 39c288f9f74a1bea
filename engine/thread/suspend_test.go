package thread

import (
	"testing"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// deeds is what people can do to a thread.
func (f *fixture) deed(name string) error {
	e := f.engine("person", 1)
	switch name {
	case "cancel":
		_, err := e.Cancel(f.Context(), testThread, "no more of it")
		return err
	case "suspend":
		return e.Suspend(f.Context(), testThread, "wait a bit")
	}
	return e.Resume(f.Context(), ResumeRequest{Thread: testThread, Text: "go on"})
}

// TestDeeds: each deed in each state of a thread, with an exit code and the status
// that it leaves.
func TestDeeds(t *testing.T) {
	states := map[string]func(f *fixture){
		"unknown": func(f *fixture) {
			_, err := f.engine("start", 1).Start(f.Context(), startRequest("01JD0000000000000000000002"))
			f.ok(err)
		},
		"active":    func(f *fixture) { f.start() },
		"claimed":   func(f *fixture) { f.start(); f.claimBy(f.other(0)) },
		"suspended": func(f *fixture) { f.start(); f.ok(f.deed("suspend")) },
		"ended":     func(f *fixture) { f.start(); f.steps("r1", "r2") },
		"cancelled": func(f *fixture) { f.start(); f.ok(f.deed("cancel")) },
	}
	want := map[string]map[string]Code{
		"unknown":   {"cancel": 2, "suspend": 2, "resume": 2},
		"active":    {"cancel": 0, "suspend": 0, "resume": 4},
		"claimed":   {"cancel": 0, "suspend": 0, "resume": 4},
		"suspended": {"cancel": 0, "suspend": 4, "resume": 0},
		"ended":     {"cancel": 4, "suspend": 4, "resume": 4},
		"cancelled": {"cancel": 0, "suspend": 4, "resume": 4},
	}
	after := map[string]string{"cancel": "cancelled", "suspend": "suspended", "resume": "active"}
	for state, set := range states {
		for deed, code := range want[state] {
			for _, atomic := range []bool{true, false} {
				t.Run(deed+" "+state, func(t *testing.T) {
					bubble(t, atomic, func(f *fixture) {
						set(f)
						lost := false
						f.remote.after = func(_ string, req wire.PushRequest) error {
							if lost || !touches(req, "refs/heads/uwf-state") {
								return nil
							}
							lost = true // a lost reply changes nothing
							return unreachable()
						}
						f.code(f.deed(deed), code)
						f.remote.after = nil
						if code != CodeOK {
							return
						}
						if got := f.status(); got != after[deed] {
							f.Errorf("it is %s", got)
						}
						if atomic {
							f.unclaimed()
						}
					})
				})
			}
		}
	}
}

// status is a thread's status, from wherever it stands.
func (f *fixture) status() string {
	f.Helper()
	v := f.view()
	if e, ok := v.Entry(testThread); ok {
		return string(e.Status)
	}
	ended, ok, err := f.store().FindEnded(f.Context(), v, testThread)
	f.ok(err)
	if !ok {
		return "unknown"
	}
	return ended.Reason
}

// TestResumeChangesTheEntry: also when the server's clock stands still.
func TestResumeChangesTheEntry(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.start()
		var before gitcas.Entry
		for range 3 {
			f.ok(f.deed("suspend"))
			f.ok(f.deed("resume"))
			now := f.entry()
			if before.Next != nil && now.Next.Since <= before.Next.Since {
				f.Errorf("since %d, then %d", before.Next.Since, now.Next.Since)
			}
			before = now
		}
	})
}
