package step_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/engine/step"
	"github.com/united-workforce/uwf/engine/step/unpushed"
	"github.com/united-workforce/uwf/engine/task"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
)

const prepareKey = "prepare-key-0123456789abcdef"

// oneStep does a step with a preparer.
func (f *forge) oneStep(p step.Preparer, agent task.Agent) error {
	f.Helper()
	head := f.start()
	j := f.job("one", f.dial(), agent, redact.Secret{Name: "KEY", Value: prepareKey})
	j.Preparer = p
	_, err := j.Step(f.ctx(), step.Request{Thread: testThread, ExpectHead: node.Pin{Hash: head}})
	return err
}

// preparedOf is what is on record of the last step's preparation, and whether there is a record
// of it. The store is sound.
func (f *forge) preparedOf() (string, bool) {
	f.Helper()
	s, v, _ := f.view()
	report, err := s.Fsck(f.ctx(), true)
	must(f, err)
	for _, p := range report.Problems {
		f.Errorf("fsck: %s: %s", p.Path, p.Why)
	}
	chain, err := v.ReadChain(f.ctx(), testThread)
	must(f, err)
	last := chain.Steps[len(chain.Steps)-1]
	if last.Prepare == nil {
		return "", false
	}
	n, err := v.In(f.ctx(), gitcas.Place{Thread: testThread, Of: last.Hash, Detail: true}).Get(*last.Prepare)
	must(f, err)
	text, ok := n.Payload.(string)
	if n.Type != node.String || !ok || last.Digests.Prepare == "" {
		f.Errorf("%+v, digest %q", n, last.Digests.Prepare)
	}
	return text, true
}

// TestPrepareOnRecord: what was printed when the folder was made ready is kept with the step,
// without secrets, and where it is too much without its middle.
func TestPrepareOnRecord(t *testing.T) {
	// A cut through the secret would leave half of it.
	long := "first\n" + strings.Repeat("x", 32<<10-534) + prepareKey + strings.Repeat("y", 40<<10) + "\nlast\n"
	for name, tt := range map[string]struct {
		output string
		check  func(got string) bool
	}{
		"short":   {"added 3 packages\n", func(got string) bool { return got == "added 3 packages\n" }},
		"secret":  {"key " + prepareKey, func(got string) bool { return strings.Contains(got, "redacted:KEY") }},
		"nothing": {"", func(got string) bool { return got == "" }},
		"long": {long, func(got string) bool {
			return strings.HasPrefix(got, "first\n") && strings.HasSuffix(got, "y\nlast\n") && strings.Contains(got, "bytes left out …]\n")
		}},
		"as much as fits": {strings.Repeat("z", 64<<10), func(got string) bool { return got == strings.Repeat("z", 64<<10) }},
		"long, in halves": {"x" + strings.Repeat("ü", 40<<10), func(got string) bool {
			return strings.Contains(got, "ü\n[… ") && strings.Contains(got, " bytes left out …]\nü")
		}},
		"as the body": {"body: same", func(got string) bool { return got == "body: same" }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForge(t, someFiles)
			var did []string
			p := prepares(func(req step.PrepareRequest) (string, error) {
				did = append(did, "prepare")
				if req.Base != f.base || req.From != f.base {
					t.Errorf("%+v, want %s", req, f.base)
				}
				return tt.output, nil
			})
			agent := agentFunc(func(ctx context.Context, asked task.Task, m *task.Meter) (task.Draft, error) {
				did = append(did, "agent")
				return works(t, "same", nil)(ctx, asked, m)
			})
			must(t, f.oneStep(p, agent))
			got, there := f.preparedOf()
			if !tt.check(got) || there != (tt.output != "") || len(got) > 64<<10 || strings.Contains(got, prepareKey[:12]) {
				t.Errorf("%d bytes on record (%v): %.200q", len(got), there, got)
			}
			if strings.Join(did, " ") != "prepare agent" {
				t.Errorf("done: %q", did)
			}
		})
	}
}

// TestPrepareFails: no agent runs in a folder that could not be made ready, and the step says why.
func TestPrepareFails(t *testing.T) {
	f := newForge(t, someFiles)
	ran := false
	err := f.oneStep(prepares(func(step.PrepareRequest) (string, error) {
		return "", &step.PrepareError{Command: "npm ci", End: "exit code 7", Output: "beginning\n" + strings.Repeat("more\n", 2_000) + "with " + prepareKey + "\nno such package\n"}
	}), agentFunc(func(context.Context, task.Task, *task.Meter) (task.Draft, error) {
		ran = true
		return task.Draft{}, errors.New("it ran")
	}))
	var failed *life.FailedError
	if !errors.As(err, &failed) || failed.Phase != "prepare" || !strings.Contains(err.Error(), "\"npm ci\" (workspace.prepare): exit code 7") || !strings.Contains(err.Error(), "no such package") || strings.Contains(err.Error(), "beginning") {
		t.Fatalf("%v", err)
	}
	if ran {
		t.Error("its agent ran")
	}
	a := f.attempt()
	if strings.Contains(err.Error()+a.Error+f.keptOf(a), prepareKey) || !strings.Contains(a.Error, "no such package") {
		t.Errorf("the attempt says %q", a.Error)
	}
}

// TestPrepareOfOthers: what another job says of its preparation is on record as its word, without
// what this job knows to be a secret, and cut once.
func TestPrepareOfOthers(t *testing.T) {
	for name, tt := range map[string]struct{ output, want string }{
		"nothing": {"", ""},
		"some":    {"added 3 packages\n", "reported by the agents' job:\nadded 3 packages\n"},
		"secret":  {"the token " + prepareKey, "reported by the agents' job:\nthe token [redacted:KEY]"},
		"long":    {strings.Repeat("a", 50<<10) + strings.Repeat("b", 50<<10), "reported by the agents' job:\n" + strings.Repeat("a", 63<<9) + "\n[… 37888 bytes left out …]\n" + strings.Repeat("b", 63<<9)},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForge(t, someFiles)
			dir, err := f.firstJobPrepared(f.start(), tt.output)
			must(t, err)
			_, err = f.secondJob(dir, redact.Secret{Name: "KEY", Value: prepareKey})
			must(t, err)
			if got, there := f.preparedOf(); got != tt.want || there != (tt.want != "") {
				t.Errorf("on record: %.100q (%v, %d bytes, want %d)", got, there, len(got), len(tt.want))
			}
		})
	}
}

// TestPrepareMadeUp: a job can leave anything under the name.
func TestPrepareMadeUp(t *testing.T) {
	for name, tt := range map[string]struct {
		typ     node.Hash
		payload any
		there   bool
	}{
		"no text":  {record.ErrorOutputSchema, map[string]any{"$status": "error", "error": "x", "phase": "y"}, false},
		"empty":    {node.String, "", false},
		"too long": {node.String, strings.Repeat("x", 2<<20), true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForge(t, someFiles)
			dir, err := f.firstJob(f.start(), works(t, "x", nil))
			must(t, err)
			u := f.readLeft(dir)
			n, h, err := node.New(tt.typ, tt.payload, time.UnixMilli(1))
			must(t, err)
			u.Nodes[h] = n
			_, err = f.commitLeft(withChangedRecord(t, u, func(s *record.Step) { s.Prepare = &h }))
			must(t, err)
			if got, there := f.preparedOf(); there != tt.there || len(got) > 64<<10 || there && !strings.Contains(got, "[… 2032640 bytes left out …]") {
				t.Errorf("on record: %v, %d bytes", there, len(got))
			}
		})
	}
	f := newForge(t, someFiles)
	dir, err := f.firstJob(f.start(), works(t, "x", nil))
	must(t, err)
	none := node.Hash("0000000000001")
	_, err = f.commitLeft(withChangedRecord(t, f.readLeft(dir), func(s *record.Step) { s.Prepare = &none }))
	must(t, err)
	if _, there := f.preparedOf(); there {
		t.Error("of a node that is not there something is on record")
	}
}

// TestPrepareBroughtIn: a sealed step that its job could not push has what it printed, too.
func TestPrepareBroughtIn(t *testing.T) {
	f := newForge(t, someFiles)
	dir, err := f.firstJobPrepared(f.start(), "added 3 packages\n")
	must(t, err)
	j := f.job("two", f.dial(), nil)
	j.Unpushed = &unpushed.Folder{Dir: dir}
	if _, in, err := j.BringIn(f.ctx(), step.Request{Thread: testThread}); !in || err != nil {
		t.Fatal(in, err)
	}
	if got, _ := f.preparedOf(); got != "reported by the job that ran it:\nadded 3 packages\n" {
		t.Errorf("on record: %q", got)
	}
}
