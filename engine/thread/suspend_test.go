package thread_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// forked is the id of the thread that the deed "fork" makes.
const forked gitcas.ThreadID = "01JD0000000000000000000009"

// deed is what people can do to a thread.
func (f *fixture) deed(name string) error {
	e := f.engine("person", 1)
	switch name {
	case "cancel":
		_, err := e.Cancel(f.Context(), testThread, "no more of it")
		return err
	case "suspend":
		return e.Suspend(f.Context(), testThread, "wait a bit")
	case "pause":
		return e.Pause(f.Context(), testThread, "wait a bit")
	case "retry":
		return e.Retry(f.Context(), testThread)
	case "poke":
		return e.Poke(f.Context(), testThread, "not like that")
	case "remove":
		return e.Remove(f.Context(), testThread)
	case "fork":
		_, err := e.Fork(f.Context(), thread.ForkRequest{ID: forked, From: testThread, Steps: 0})
		return err
	}
	return e.Resume(f.Context(), thread.ResumeRequest{Thread: testThread, Text: "go on"})
}

// TestDeeds: each deed in each state of a thread, with an exit code and the status
// that it leaves. A lost reply changes nothing.
func TestDeeds(t *testing.T) {
	fail := func(f *fixture) {
		answer := f.agent
		f.agent = f.fails
		_, err := f.step("f")
		f.code(err, life.KindFailed)
		f.agent = answer
	}
	states := map[string]func(f *fixture){
		"unknown": func(f *fixture) {
			_, err := f.engine("start", 1).Start(f.Context(), startRequest("01JD0000000000000000000002"))
			f.ok(err)
		},
		"new":       func(f *fixture) { f.start() },
		"active":    func(f *fixture) { f.start(); f.steps("r1") },
		"claimed":   func(f *fixture) { f.start(); f.steps("r1"); f.claimBy(f.other(0)) },
		"dead":      func(f *fixture) { f.start(); f.steps("r1"); f.claimBy(f.other(21 * time.Minute)) },
		"failed":    func(f *fixture) { f.start(); f.steps("r1"); fail(f) },
		"suspended": func(f *fixture) { f.start(); f.steps("r1"); f.ok(f.deed("suspend")) },
		"pausing": func(f *fixture) {
			f.start()
			f.steps("r1")
			f.claimBy(f.other(0))
			f.ok(f.engine("p", 1).Pause(f.Context(), testThread, "soon"))
		},
		"delivering": func(f *fixture) { f.end() },
		"being delivered": func(f *fixture) {
			f.end()
			c := f.other(0)
			c.For = life.ForDelivery
			f.claimBy(c)
		},
		"not delivered": func(f *fixture) { f.end(); f.undelivered("d1") },
		"undeliverable": func(f *fixture) { f.end(); f.undelivered("d1"); f.undelivered("d2"); f.undelivered("d3") },
		"ended":         func(f *fixture) { f.start(); f.steps("r1", "r2") },
		"cancelled":     func(f *fixture) { f.start(); f.steps("r1"); f.ok(f.deed("cancel")) },
		"removed":       func(f *fixture) { f.start(); f.steps("r1", "r2"); f.ok(f.deed("remove")) },
	}
	want := map[string]string{ // the status that it leaves, or an exit code
		"unknown":    "cancel 2, suspend 2, resume 2, pause 2, retry 2, poke 2, remove 2, fork 2",
		"new":        "cancel cancelled, suspend suspended, resume 4, pause suspended, retry 4, poke 4, remove 4, fork active",
		"active":     "cancel cancelled, suspend suspended, resume 4, pause suspended, retry 4, poke active, remove 4, fork active",
		"claimed":    "cancel cancelled, suspend suspended, resume 4, pause active, retry 4, poke 4, remove 4, fork active",
		"dead":       "cancel cancelled, suspend suspended, resume 4, pause suspended, retry active, poke active, remove 4, fork active",
		"failed":     "cancel cancelled, suspend suspended, resume 4, pause suspended, retry active, poke active, remove 4, fork active",
		"suspended":  "cancel cancelled, suspend 4, resume active, pause 4, retry 4, poke active, remove 4, fork suspended",
		"pausing":    "cancel cancelled, suspend suspended, resume 4, pause active, retry 4, poke 4, remove 4, fork active",
		"delivering": "cancel cancelled, suspend 4, resume active, pause 4, retry 4, poke 4, remove 4, fork ended",

		"being delivered": "cancel cancelled, suspend 4, resume active, pause 4, retry 4, poke 4, remove 4, fork ended",
		"not delivered":   "cancel cancelled, suspend 4, resume active, pause 4, retry ended, poke 4, remove 4, fork ended",
		"undeliverable":   "cancel cancelled, suspend 4, resume ended, pause 4, retry ended, poke active, remove 4, fork suspended",

		"ended":     "cancel 4, suspend 4, resume active, pause 4, retry 4, poke 4, remove removed, fork ended",
		"cancelled": "cancel cancelled, suspend 4, resume 4, pause 4, retry 4, poke 4, remove removed, fork cancelled",
		"removed":   "cancel 4, suspend 4, resume 4, pause 4, retry 4, poke 4, remove removed, fork 4",
	}
	for state, set := range states {
		for line := range strings.SplitSeq(want[state], ", ") {
			deed, status, _ := strings.Cut(line, " ")
			code, refused := strconv.Atoi(status)
			for _, atomic := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s %s, atomic %v", deed, state, atomic), func(t *testing.T) {
					bubble(t, atomic, func(f *fixture) {
						set(f)
						before := len(f.mem.Refs())
						lost := false
						f.remote.after = func(_ string, req wire.PushRequest) error {
							if lost || !touches(req, "refs/heads/uwf-state") {
								return nil
							}
							lost = true // a lost reply changes nothing
							return unreachable()
						}
						text := f.code(f.deed(deed), life.Kind(code))
						f.remote.after = nil
						f.sound()
						if refused == nil {
							f.says(text, "thread "+string(testThread))
							if after := len(f.mem.Refs()); after != before {
								f.Errorf("%d refs, before %d", after, before)
							}
							return
						}
						if got := f.status(); got != status {
							f.Errorf("it is %s", got)
						}
						if atomic && status != "active" && deed != "fork" {
							f.unclaimed()
						}
					})
				})
			}
		}
	}
}

// sound checks the whole store.
func (f *fixture) sound() {
	f.Helper()
	report, err := f.store().Fsck(f.Context(), true)
	f.ok(err)
	for _, p := range report.Problems {
		f.Errorf("fsck: %s: %s", p.Path, p.Why)
	}
}

// status is a thread's status, from wherever it stands.
func (f *fixture) status() string {
	f.Helper()
	v := f.view()
	if e, ok := v.Entry(testThread); ok {
		return string(e.Status)
	}
	ended, ok, err := v.FindEnded(f.Context(), testThread)
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

// TestSuspendsWithItsClaimOnly: a job whose thread was changed or taken over while its
// suspension was on the way leaves thread and claim as they are now.
func TestSuspendsWithItsClaimOnly(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(f *fixture)
		says      string
		claimed   string // the run whose claim is there afterwards
	}{
		"taken over": {func(f *fixture) { f.claimBy(f.other(0)) }, "its claim was lost", "other"},
		"let go":     {func(f *fixture) { f.mem.SetRef(layout.ClaimRef(testThread), wire.ZeroID) }, "its claim was lost", ""},
		"changed": {func(f *fixture) {
			f.edit(func(e *gitcas.Entry) { e.Limits = map[string]float64{"maxSteps": 9} })
		}, "it changed", ""},
		"over": {func(f *fixture) {
			_, err := f.engine("p", 1).Cancel(f.Context(), testThread, "no more of it")
			f.ok(err)
		}, "it changed", ""},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.start()
				f.steps("r1")
				f.limits = moderator.Limits{MaxSteps: 1}
				f.remote.setBefore(func(_ string, req wire.PushRequest) error {
					if touches(req, "refs/heads/uwf-state") && touches(req, "claims") {
						f.remote.setBefore(nil)
						c.meanwhile(f)
					}
					return nil
				})
				_, err := f.step("r2")
				f.says(f.code(err, life.KindNotYours), c.says)
				if got := f.status(); got == "suspended" {
					f.Error("it is suspended")
				}
				held, _ := f.view().FindClaim(testThread)
				if held.Run != c.claimed {
					f.Errorf("the claim is that of %q", held.Run)
				}
			})
		})
	}
}
