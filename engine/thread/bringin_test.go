package thread_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/united-workforce/uwf/engine/attempt"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/step/unpushed"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/gitcas/wire"
)

// memoryDisk keeps sealed steps as unpushed.Folder does, in memory.
type memoryDisk struct {
	files map[string][]byte
	full  bool
}

func (d *memoryDisk) Path(store string, id gitcas.ThreadID, nonce string) string {
	return store + "/" + string(id) + "." + nonce
}

func (d *memoryDisk) Write(s unpushed.Step) error {
	var b bytes.Buffer
	if d.full {
		return errors.New("no space left on device")
	}
	if err := unpushed.Encode(&b, s); err != nil {
		return err
	}
	if d.files == nil {
		d.files = map[string][]byte{}
	}
	d.files[d.Path(s.Store, s.Thread, s.Nonce)] = b.Bytes()
	return nil
}

func (d *memoryDisk) Read(store string, id gitcas.ThreadID) (unpushed.Step, error) {
	for _, path := range d.paths(store, id) {
		return d.read(path)
	}
	return unpushed.Step{}, fs.ErrNotExist
}

// paths are those of the steps that are kept for a thread.
func (d *memoryDisk) paths(store string, id gitcas.ThreadID) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(d.files)), func(path string) bool {
		return !strings.HasPrefix(path, d.Path(store, id, "")) || strings.HasSuffix(path, ".bad")
	})
}

func (d *memoryDisk) read(path string) (unpushed.Step, error) {
	s, err := unpushed.Decode(bytes.NewReader(d.files[path]))
	if err != nil {
		err = &unpushed.BadError{Path: path, Why: err.Error()}
	}
	return s, err
}

func (d *memoryDisk) Remove(store string, id gitcas.ThreadID, nonce string) error {
	delete(d.files, d.Path(store, id, nonce))
	return nil
}

func (d *memoryDisk) Clear(store string) error {
	maps.DeleteFunc(d.files, func(path string, _ []byte) bool { return strings.HasPrefix(path, store+"/") })
	return nil
}

func (d *memoryDisk) SetAside(path string) (string, error) {
	d.files[path+".bad"] = d.files[path]
	delete(d.files, path)
	return path + ".bad", nil
}

// kept is what lies on the disk of the thread: a step for each "", and what was moved aside
// for each ".bad".
func (f *fixture) kept(want ...string) {
	f.Helper()
	var got []string
	for path := range f.disk.files {
		if !strings.HasPrefix(path, f.disk.Path(f.view().StoreID(), testThread, "")) {
			f.Errorf("%s is on disk", path)
		}
		if strings.HasSuffix(path, ".bad") {
			got = append(got, ".bad")
		} else {
			got = append(got, "")
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		f.Errorf("on disk there is %q, want %q: %q", got, want, f.told)
	}
}

// down makes the server answer nothing.
func (f *fixture) down() {
	f.remote.setBefore(func(string, wire.PushRequest) error { return unreachable() })
}

// killed is a job that dies when its step is on disk.
func (f *fixture) killed(run string) {
	f.Helper()
	type died struct{}
	f.hook = func(point string) {
		if point == "on-disk" {
			f.down() // nothing that follows arrives
			panic(died{})
		}
	}
	defer func() {
		f.hook = nil
		f.remote.setBefore(nil)
		if _, ok := recover().(died); !ok {
			f.Fatal("the job was not killed")
		}
		time.Sleep(life.MaxClaim)
	}()
	_, err := f.step(run)
	f.Fatalf("the job lived: %v", err)
}

// cutOff is a job that can't push any more when its step is sealed.
func (f *fixture) cutOff(run string) {
	f.Helper()
	f.hook = func(point string) {
		if point == "on-disk" {
			f.down()
		}
	}
	_, err := f.step(run)
	f.hook = nil
	f.remote.setBefore(nil)
	f.says(f.code(err, life.KindFailed), "it is in "+f.view().StoreID(), "brings it in")
	time.Sleep(life.MaxClaim)
}

// onDisk runs a test after a job that left its step on the disk.
func onDisk(t *testing.T, atomic bool, test func(f *fixture)) {
	t.Helper()
	bubble(t, atomic, func(f *fixture) {
		f.disk = &memoryDisk{}
		f.slowly()
		f.start()
		f.cutOff("r1")
		f.kept("")
		test(f)
	})
}

// slowly makes agents work for so long that their claims say what they took.
func (f *fixture) slowly() {
	answer := f.agent
	f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
		f.files["made by "+t.Role] = "it\n"
		d, err := answer(ctx, t, m)
		time.Sleep(2*lease.RenewEvery + time.Second)
		return d, err
	}
}

func (f *fixture) totals() moderator.Totals {
	f.Helper()
	_, t, err := attempt.CountThread(f.Context(), f.store(), f.view(), testThread)
	f.ok(err)
	return t
}

// TestBringIn: a step that is on disk is put into its thread as its job would have, and
// nothing is paid twice.
func TestBringIn(t *testing.T) {
	for _, atomic := range []bool{true, false} {
		var head node.Hash
		var used moderator.Totals
		var tip wire.ID
		bubble(t, atomic, func(f *fixture) { // what is to come of it
			f.disk = &memoryDisk{}
			f.slowly()
			f.start()
			f.steps("r1")
			head, used, tip = f.entry().Head, f.totals(), f.base()
		})
		for name, end := range map[string]func(*fixture, string){"killed": (*fixture).killed, "cut off": (*fixture).cutOff} {
			t.Run(fmt.Sprint(name, ", atomic ", atomic), func(t *testing.T) {
				bubble(t, atomic, func(f *fixture) {
					f.disk = &memoryDisk{}
					f.slowly()
					f.start()
					end(f, "r1")
					if len(f.chain().Steps) != 0 {
						f.Fatal("it was pushed")
					}
					f.kept("")
					res := f.steps("r2")
					f.paid(1)
					f.kept()
					f.unclaimed()
					if e := f.entry(); e.Head != head || res.Head != head || len(e.Attempts) != 0 || res.Role != "a" || res.NextRole != "b" || res.Again {
						f.Errorf("%+v\n%+v, want head %s", e, res, head)
					}
					if !reflect.DeepEqual(f.totals(), used) || f.base() != tip {
						f.Errorf("%+v at %s, want %+v at %s", f.totals(), f.base(), used, tip)
					}
					if s := f.chain().Steps[0]; s.Run.ID != "r1" || len(s.PreviousAttempts) > 0 {
						f.Errorf("%+v", s.Step)
					}
					f.steps("r3")
					f.paid(2)
				})
			})
		}
	}
}

// TestBringInAgain: an outage that lasts costs nothing but time.
func TestBringInAgain(t *testing.T) {
	onDisk(t, true, func(f *fixture) {
		for _, point := range []string{"", "claim"} {
			f.hook = func(at string) {
				if at == point {
					f.down()
				}
			}
			f.hook("")
			_, err := f.step("r2")
			f.remote.setBefore(nil)
			if err == nil {
				f.Fatalf("brought in at %q", point)
			}
			f.kept("")
			time.Sleep(life.MaxClaim)
		}
		f.hook = nil
		f.steps("r3")
		f.paid(1)
		f.kept()
		if s := f.chain().Steps[0]; s.Run.ID != "r1" || f.totals().Tokens != 11 {
			f.Errorf("%+v", s.Step)
		}
	})
}

// TestBringInWaits: an outage is waited for while what the step needs is read.
func TestBringInWaits(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.disk = &memoryDisk{}
		answer := f.agent
		f.agent = f.fails
		f.start()
		_, err := f.step("r0")
		f.code(err, life.KindFailed)
		f.agent = answer
		f.cutOff("r1")
		f.hook = func(point string) {
			if point != "claim" {
				return
			}
			back, listed := time.Now().Add(5*time.Minute), false
			f.remote.setBefore(func(op string, _ wire.PushRequest) error {
				switch {
				case op == "list" && !listed: // that the claim was won
					listed = true
				case time.Now().Before(back):
					return unreachable()
				}
				return nil
			})
		}
		_, err = f.step("r2")
		f.hook = nil
		f.ok(err)
		f.paid(2)
		f.kept()
	})
}

// TestBringInRefused: what the remote refuses this job is not held against what is on disk.
func TestBringInRefused(t *testing.T) {
	for name, kind := range map[string]error{"denied": wire.ErrDenied, "a page instead": wire.ErrUnreadable, "read-only": wire.ErrReadOnly} {
		t.Run(name, func(t *testing.T) {
			onDisk(t, true, func(f *fixture) {
				f.ok(f.engine("p", 1).Suspend(f.Context(), testThread, "wait"))
				f.remote.setBefore(func(op string, _ wire.PushRequest) error {
					if op == "push" {
						return &wire.RemoteError{Op: op, URL: "memory:", Kind: kind}
					}
					return nil
				})
				_, err := f.step("r2")
				f.says(f.code(err, life.KindDamaged), kind.Error())
				f.kept("")
				f.remote.setBefore(nil)
				_, err = f.step("r3")
				f.code(err, life.KindSuspended)
				f.kept()
				f.attempt("r1", 1)
			})
		})
	}
}

// TestBringInClaimed: another job's claim counts for what is on disk, too.
func TestBringInClaimed(t *testing.T) {
	onDisk(t, true, func(f *fixture) {
		f.claimBy(f.other(0))
		_, err := f.step("r2")
		f.says(f.code(err, life.KindNotYours), "run other")
		f.kept("")
		time.Sleep(life.MaxClaim)
		f.steps("r3")
		f.paid(1)
		f.kept()
	})
}

// TestBringInLate: where the thread is not as the job read it, its step is an attempt.
func TestBringInLate(t *testing.T) {
	for name, c := range map[string]struct {
		happen func(f *fixture)
		code   life.Kind // of the next step
		paid   int       // with that step
		linked bool      // the attempt counts
	}{
		"answered": {func(f *fixture) {
			f.edit(func(e *gitcas.Entry) { e.Next = &gitcas.Next{Role: "a", Since: e.Next.Since + 1} })
		}, life.KindDone, 2, true},
		"limits raised": {func(f *fixture) {
			f.edit(func(e *gitcas.Entry) { e.Limits = map[string]float64{"maxSteps": 9} })
		}, life.KindDone, 2, true},
		"suspended": {func(f *fixture) { f.ok(f.engine("p", 1).Suspend(f.Context(), testThread, "wait")) }, life.KindSuspended, 1, false},
		"cancelled": {func(f *fixture) {
			_, err := f.engine("p", 1).Cancel(f.Context(), testThread, "no")
			f.ok(err)
		}, life.KindNotYours, 1, false},
		"stepped by another": {func(f *fixture) {
			e := f.engine("elsewhere", 1)
			e.Unpushed = nil
			_, err := e.Step(f.Context(), f.at(testThread))
			f.ok(err)
		}, life.KindDone, 3, false},
		"another is at the next step": {func(f *fixture) {
			e := f.engine("elsewhere", 1)
			e.Unpushed = nil
			_, err := e.Step(f.Context(), f.at(testThread))
			f.ok(err)
			f.claimBy(f.other(0))
		}, life.KindNotYours, 2, false},
		"ended by others": {func(f *fixture) {
			for _, run := range []string{"e1", "e2"} {
				e := f.engine(run, 1)
				e.Unpushed = nil
				_, err := e.Step(f.Context(), f.at(testThread))
				f.ok(err)
			}
		}, life.KindNotYours, 3, false},
	} {
		for _, atomic := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", atomic ", atomic), func(t *testing.T) {
				onDisk(t, atomic, func(f *fixture) {
					c.happen(f)
					_, err := f.step("r2")
					f.code(err, c.code)
					f.paid(c.paid)
					f.kept()
					a := f.attempt("r1", 1)
					if a.Claim != nil {
						f.Error("only its claim was kept")
					}
					if text := f.contents(f.mem.Refs()[layout.AttemptRef(testThread, "r1", 1)]); !strings.Contains(text, "it\n") || !strings.Contains(text, "what now?") {
						f.Errorf("the attempt holds\n%s", text)
					}
					if !c.linked {
						return
					}
					s := f.chain().Steps[0]
					if s.Run.ID != "r2" || len(s.PreviousAttempts) != 1 {
						f.Errorf("%+v", s.Step)
					}
					if got := f.totals(); got.Tokens != 22 || got.CostUSD != 1 {
						f.Errorf("%+v: each was paid once", got)
					}
				})
			})
		}
	}
}

// TestBringInPushed: a step that was pushed after all is not pushed again.
func TestBringInPushed(t *testing.T) {
	for name, c := range map[string]struct {
		then func(f *fixture)
		paid int
		code life.Kind
	}{
		"next": {func(*fixture) {}, 2, life.KindDone},
		"and the thread went on": {func(f *fixture) {
			e := f.engine("elsewhere", 1)
			e.Unpushed = nil
			_, err := e.Step(f.Context(), f.at(testThread))
			f.ok(err)
		}, 2, life.KindNotYours},
		"and it was taken back": {func(f *fixture) {
			f.ok(f.engine("p", 1).Poke(f.Context(), testThread, "no"))
		}, 2, life.KindDone},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.disk = &memoryDisk{}
				f.start()
				f.remote.after = func(_ string, req wire.PushRequest) error {
					if !touches(req, "refs/heads/uwf-state") {
						return nil
					}
					f.down()
					return unreachable()
				}
				f.agent = f.answer("done", "rejected")
				if name == "and the thread went on" {
					f.agent = f.answer("done", "approved")
				}
				_, err := f.step("r0")
				f.remote.after = nil
				f.remote.setBefore(nil)
				f.says(f.code(err, life.KindFailed), "not known")
				f.kept("")
				time.Sleep(life.MaxClaim)
				c.then(f)
				res, in, err := f.engine("r1", 1).BringIn(f.Context(), f.at(testThread))
				f.ok(err)
				f.kept()
				if back := name == "and it was taken back"; in == back || in && !res.Again {
					f.Errorf("%t %+v", in, res)
				}
				if _, kept := f.mem.Refs()[layout.AttemptRef(testThread, "r0", 1)]; kept {
					f.Error("it became an attempt beside what it is")
				}
				_, err = f.step("r2")
				f.code(err, c.code)
				f.paid(c.paid)
			})
		})
	}
}

// TestBroughtInByOthers: a job whose step others brought in before it could push has done
// it: there is no attempt beside it, whatever the job was about to do.
func TestBroughtInByOthers(t *testing.T) {
	next := func(f *fixture) { f.steps("r2") }
	for name, c := range map[string]struct {
		refused bool // the job's own push is, and so it keeps an attempt meanwhile
		happen  func(f *fixture)
		steps   int
		done    bool
	}{
		"brought in":               {false, next, 1, false},
		"while the other gives up": {true, next, 1, false},
		"and the thread went on":   {false, func(f *fixture) { f.steps("r2", "r3") }, 2, false},
		"and ended": {false, func(f *fixture) {
			f.agent = f.answer("done", "approved")
			f.steps("r2", "r3")
		}, 2, true},
		"and was cancelled": {false, func(f *fixture) {
			f.steps("r2")
			_, err := f.engine("p", 1).Cancel(f.Context(), testThread, "no")
			f.ok(err)
		}, 1, true},
	} {
		for _, atomic := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", atomic ", atomic), func(t *testing.T) {
				bubble(t, atomic, func(f *fixture) {
					f.disk = &memoryDisk{}
					f.agent = f.answer("done", "rejected")
					f.slowly()
					f.start()
					others := func() {
						f.hook = nil
						f.remote.setBefore(nil)
						time.Sleep(life.MaxClaim)
						c.happen(f)
					}
					f.hook = func(point string) {
						switch {
						case point == "on-disk" && c.refused:
							f.remote.setBefore(func(op string, _ wire.PushRequest) error {
								if op != "push" {
									return nil
								}
								others()
								return &wire.RemoteError{Op: op, URL: "memory:", Kind: wire.ErrDenied}
							})
						case point == "on-disk":
							others()
						}
					}
					res, err := f.step("r1")
					f.ok(err)
					f.paid(c.steps)
					f.kept()
					f.unclaimed()
					if !res.Again || res.Done != c.done || res.Step != c.steps {
						f.Errorf("%+v", res)
					}
					_, left := f.mem.Refs()[layout.AttemptRefs(testThread)+"r1.1"]
					switch {
					case name == "and ended" && atomic:
						if left {
							f.Error("the thread has ended, and the ref of a try whose job died is still there")
						}
					case f.attempt("r1", 1).Claim == nil && atomic: // else it holds the commit, too
						f.Error("it became an attempt beside what it is")
					}
				})
			})
		}
	}
}

// TestTwoSealed: what one job of a machine sealed no other writes over or removes, and all of
// it is in the thread in the end, as its step or as an attempt.
func TestTwoSealed(t *testing.T) {
	for _, dies := range []bool{false, true} {
		t.Run(fmt.Sprint("the late job dies, too: ", dies), func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.disk = &memoryDisk{}
				f.start()
				die := func(point string) {
					if point == "on-disk" {
						panic("killed")
					}
				}
				job := func(run string) {
					defer func() {
						if died := recover(); died != nil && died != "killed" {
							panic(died)
						}
					}()
					_, _ = f.step(run)
				}
				answer := f.agent
				f.agent = func(ctx context.Context, t task.Task, m *task.Meter) (task.Draft, error) {
					f.agent = answer
					f.ok(f.engine("p", 1).Take(f.Context(), testThread))
					f.hook = die
					job("r2")
					return answer(ctx, t, m)
				}
				if dies {
					f.hook = die
				}
				job("r1")
				f.hook = nil
				if dies {
					f.kept("", "")
				} else {
					f.kept("")
				}
				time.Sleep(life.MaxClaim)
				f.steps("r3", "r4")
				f.paid(3)
				f.kept()
			})
		})
	}
}

// TestBringInWithPeople: people's commits on the work branch are kept as at any step.
func TestBringInWithPeople(t *testing.T) {
	work := "refs/heads/uwf/" + string(testThread)
	for name, c := range map[string]struct {
		files map[string]string
		code  life.Kind
	}{
		"other files":    {map[string]string{"theirs": "x", "made by a": "it\n"}, life.KindDone},
		"the same files": {map[string]string{"made by b": "theirs\n"}, life.KindSuspended},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(f *fixture) {
				f.disk = &memoryDisk{}
				f.agent = f.answer("done", "rejected")
				f.slowly()
				f.start()
				f.steps("r0")
				f.cutOff("r1")
				f.pushes(work, c.files, f.base())
				_, err := f.step("r2")
				f.code(err, c.code)
				f.paid(2)
				f.kept()
				if c.code == life.KindDone {
					files, err := (&testFolder{f: f}).read(f.base())
					if f.ok(err); files["theirs"] != "x" || files["made by b"] != "it\n" {
						f.Errorf("%q", files)
					}
				}
			})
		})
	}
}

// TestBringInEnd: the last step ends the thread, for a job that delivers it, too.
func TestBringInEnd(t *testing.T) {
	for _, deliver := range []bool{false, true} {
		inBubble(t, func(f *fixture) {
			f.disk = &memoryDisk{}
			f.start()
			f.steps("r0")
			f.cutOff("r1")
			e := f.engine("rescue", 1)
			e.Agent = nil // it has none
			res, in, err := e.BringIn(f.Context(), step.Request{Thread: testThread, Deliver: deliver})
			f.ok(err)
			f.paid(2)
			f.kept()
			if _, alive := f.view().Entry(testThread); !in || !res.Done || res.Deliver != deliver || alive != deliver {
				f.Errorf("%t, %t: %+v", in, alive, res)
			}
			if res, in, err := e.BringIn(f.Context(), f.at(testThread)); in || err != nil {
				f.Errorf("%t %v: %+v", in, err, res)
			}
		})
	}
}

// TestBringInExpected: a job that is to step another head leaves what is on disk alone.
func TestBringInExpected(t *testing.T) {
	onDisk(t, true, func(f *fixture) {
		_, err := f.stepWith("r2", 1, step.Request{Thread: testThread, ExpectHead: node.Pin{Hash: "0000000000001"}})
		f.code(err, life.KindNotYours)
		f.kept("")
		head := f.entry().Head
		_, err = f.stepWith("r2", 1, step.Request{Thread: testThread, ExpectHead: node.Pin{Hash: head, Digest: node.Digest("sha256:" + strings.Repeat("0", 64))}})
		f.code(err, life.KindDamaged)
		f.kept("")
		_, err = f.stepWith("r2", 1, step.Request{Thread: testThread, ExpectHead: node.Pin{Hash: head}})
		f.ok(err)
		f.paid(1)
	})
}

// TestDiskFull: that nothing can be kept on disk fails no step.
func TestDiskFull(t *testing.T) {
	inBubble(t, func(f *fixture) {
		f.disk = &memoryDisk{full: true}
		f.start()
		f.steps("r1", "r2")
		f.kept()
		f.says(strings.Join(f.told, "\n"), "no space left on device")
	})
}

// TestBringInForged: what no job of this thread wrote never becomes a step, and keeps
// nobody from going on.
func TestBringInForged(t *testing.T) {
	key := wire.NewObject(plumbing.BlobObject, []byte("token push-token-0123456789abcdef"))
	restep := func(change func(*record.Step)) func(*fixture, *unpushed.Step) {
		return func(f *fixture, u *unpushed.Step) {
			s, err := u.Record()
			f.ok(err)
			change(&s)
			n, h, err := s.Node(time.Now())
			f.ok(err)
			u.Nodes[h], u.Handle = n, h
		}
	}
	tree := func(mode, name string, id wire.ID) func(*fixture, *unpushed.Step) {
		return func(_ *fixture, u *unpushed.Step) {
			t := wire.NewObject(plumbing.TreeObject, []byte(mode+" "+name+"\x00"+string(id[:])))
			c := wire.NewObject(plumbing.CommitObject, []byte("tree "+t.ID.String()+"\nauthor a <a> 1 +0000\ncommitter a <a> 1 +0000\n\nm\n"))
			u.Work.Commit, u.Work.Objects = c.ID, wire.Objects{}
			for _, o := range []wire.Object{key, t, c} {
				u.Work.Objects.Add(o)
			}
		}
	}
	for name, c := range map[string]struct {
		forge func(*fixture, *unpushed.Step)
		aside bool // else it is an attempt
		says  string
	}{
		"a role that there isn't":    {restep(func(s *record.Step) { s.Role = "$END" }), true, `no role "$END"`},
		"another role":               {restep(func(s *record.Step) { s.Role = "b" }), false, "the next step is role a's"},
		"another start":              {restep(func(s *record.Step) { s.Start = s.Output }), false, "belongs to another thread"},
		"another head":               {restep(func(s *record.Step) { s.Prev = &s.Output }), false, "does not follow the thread's head"},
		"an output of another type":  {restep(func(s *record.Step) { s.Output = *s.AssembledPrompt }), false, "is of type"},
		"an output that isn't there": {restep(func(s *record.Step) { s.Output = "0000000000001" }), false, "output"},
		"a status without an edge": {func(f *fixture, u *unpushed.Step) {
			n, h, err := node.New(f.runs[0].OutputSchema, map[string]any{"$status": "approved", "note": "x"}, time.Now())
			f.ok(err)
			u.Nodes[h] = n
			restep(func(s *record.Step) { s.Output = h })(f, u)
		}, false, "$status"},
		"a path that leads out":  {tree("100644", "..", key.ID), true, ".."},
		"an absolute path":       {tree("100644", "/etc/passwd", key.ID), true, "/etc"},
		"git's folder":           {tree("40000", ".git", wire.EmptyTree), true, ".git"},
		"a link that leads out":  {tree("120000", "l", key.ID), true, ""},
		"a secret":               {tree("100644", "f", key.ID), true, "PLANTED"},
		"an object of elsewhere": {tree("100644", "f", wire.NewObject(plumbing.BlobObject, []byte("x")).ID), true, "neither new nor"},
		"from nowhere":           {func(_ *fixture, u *unpushed.Step) { u.Work.From = key.ID }, true, ""},
		"from elsewhere": {func(f *fixture, u *unpushed.Step) {
			f.pushes("refs/heads/other", map[string]string{"other": "x"})
			u.Work.From = f.mem.Refs()["refs/heads/other"]
			u.Work.Commit, u.Work.Objects = wire.ZeroID, nil
		}, false, "not the thread's"},
		"from another branch": {func(f *fixture, u *unpushed.Step) {
			f.pushes("refs/heads/other", map[string]string{"other": "x"})
			f.pushes("refs/heads/uwf/"+string(testThread), map[string]string{"theirs": "x"})
			u.Work.From = f.mem.Refs()["refs/heads/other"]
			u.Work.Commit, u.Work.Objects = wire.ZeroID, nil
		}, false, "does not contain"},
	} {
		t.Run(name, func(t *testing.T) {
			onDisk(t, true, func(f *fixture) {
				f.secrets("push-token-0123456789abcdef")
				store := f.view().StoreID()
				u, err := f.disk.Read(store, testThread)
				f.ok(err)
				c.forge(f, &u)
				f.ok(f.disk.Write(u))
				_, err = f.step("r2")
				if c.says == "does not contain" { // as of any step whose branch is another
					f.says(f.code(err, life.KindSuspended), c.says)
					f.kept()
					return
				}
				f.ok(err)
				f.paid(2)
				if s := f.chain().Steps[0]; s.Run.ID != "r2" {
					f.Errorf("%+v", s.Step)
				}
				f.says(strings.Join(f.told, "\n"), c.says)
				if c.aside {
					f.kept(".bad")
				} else {
					f.kept()
					f.attempt("r1", 1)
				}
				f.nowhere("push-token-0123456789abcdef")
			})
		})
	}
}

// TestBringInCheap: a step can't say that it took less than its claim did.
func TestBringInCheap(t *testing.T) {
	for name, usage := range map[string]record.Usage{
		"tokens": {Turns: 1, InputTokens: 1, CostUSD: 0.5}, "money": {Turns: 1, InputTokens: 10, OutputTokens: 1, CostUSD: 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			onDisk(t, true, func(f *fixture) {
				u, err := f.disk.Read(f.view().StoreID(), testThread)
				f.ok(err)
				s, err := u.Record()
				f.ok(err)
				s.Usage = &usage
				n, h, err := s.Node(time.Now())
				f.ok(err)
				u.Nodes[h], u.Handle = n, h
				f.ok(f.disk.Write(u))
				f.steps("r2")
				f.paid(1)
				if got := f.totals(); got.Tokens != 11+usage.InputTokens+usage.OutputTokens || got.CostUSD != 0.5+usage.CostUSD {
					f.Errorf("%+v", got)
				}
			})
		})
	}
}

// TestBringInOfAnotherClaim: what stands on a claim that the step was not made under is
// an attempt of its own.
func TestBringInOfAnotherClaim(t *testing.T) {
	onDisk(t, true, func(f *fixture) {
		u, err := f.disk.Read(f.view().StoreID(), testThread)
		f.ok(err)
		u.Nonce, f.disk.files = "another", nil
		f.ok(f.disk.Write(u))
		f.steps("r2")
		f.paid(1)
		if got := f.totals(); got.Tokens != 22 {
			f.Errorf("%+v", got)
		}
	})
}

// TestBringInUnreadable: a file that holds no step is told of, moved aside, and forgotten.
func TestBringInUnreadable(t *testing.T) {
	onDisk(t, true, func(f *fixture) {
		for name := range f.disk.files {
			f.disk.files[name] = []byte("garbage\n")
		}
		f.steps("r2")
		f.paid(2)
		f.kept(".bad")
		f.says(strings.Join(f.told, "\n"), ".bad")
	})
}

// TestBringInRedacts: a secret that this job knows, and the one that sealed did not, is
// taken out like any other.
func TestBringInRedacts(t *testing.T) {
	onDisk(t, true, func(f *fixture) {
		f.secrets("what now?")
		f.steps("r2")
		f.paid(1)
		f.nowhere("what now?")
	})
}
