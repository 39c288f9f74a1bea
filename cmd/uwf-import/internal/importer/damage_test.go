package importer

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/ocastest"
)

// TestDamagedLists: a list, or a line of one, that can't be read leaves out what it alone
// names; the problem says where it stands.
func TestDamagedLists(t *testing.T) {
	const g0, g4, g8, gc, flow = "G0 imported 2 active\n", "G4 imported 1 suspended\n", "G8 imported 2 ended\n", "GC imported 0 cancelled\n", "solve imported\n"
	edit := func(name string, change func(text string, w *world) string) func(*testing.T, *world) {
		return func(t *testing.T, w *world) {
			t.Helper()
			file := filepath.Join(w.dir, "root", name)
			b, err := os.ReadFile(file)
			w.ok(err)
			w.ok(os.WriteFile(file, []byte(change(string(b), w)), 0o600))
		}
	}
	replace := func(name, old, by string) func(*testing.T, *world) {
		return edit(name, func(text string, w *world) string {
			if !strings.Contains(text, old) {
				w.Fatalf("%s has no %q", name, old)
			}
			return strings.Replace(text, old, by, 1)
		})
	}
	rows := map[string]struct {
		damage  func(*testing.T, *world)
		want    string
		problem string // "": what is wrong is the thread or the workflow
	}{
		"a line that is no JSON":     {replace("history.jsonl", `{"thread"`, `{thread`), g0 + g4 + gc + flow, "root/history.jsonl: line 1: "},
		"a line that is cut":         {edit("history.jsonl", func(s string, _ *world) string { return s[:len(s)-20] }), g0 + g4 + g8 + flow, "root/history.jsonl: line 2: "},
		"a line of zeros":            {edit("history.jsonl", func(s string, _ *world) string { return s + "\n" + strings.Repeat("\x00", 99) }), allImported, "root/history.jsonl: line 4: "},
		"a line without a thread":    {replace("history.jsonl", `"thread"`, `"threat"`), g0 + g4 + gc + flow, `root/history.jsonl: line 1: thread "" at `},
		"a reason that nobody knows": {replace("history.jsonl", `"cancelled"`, `"cancemled"`), g0 + g4 + g8 + flow, "root/history.jsonl: line 2: thread " + ocastest.Cancelled + `: unknown status "cancemled"`},
		"an id that is none":         {replace("threads.yaml", ocastest.Suspended, "06F2S00000000000000000000U"), g0 + g8 + gc + flow, `root/threads.yaml: line 2: thread "06F2S00000000000000000000U" at `},
		"a hash that is none":        {replace("threads.yaml", "head: ", "head: U"), g0 + g8 + gc + flow, `root/threads.yaml: line 2: thread "` + ocastest.Suspended + `" at `},
		"a status that nobody knows": {replace("threads.yaml", "  suspendedRole: ", "  status: "), g0 + g8 + gc + flow, "root/threads.yaml: line 2: thread " + ocastest.Suspended + `: unknown status "developer"`},
		"an entry that is no YAML":   {replace("threads.yaml", "  suspendedRole: ", "  }suspendedRole: ["), g0 + g8 + gc + flow, "root/threads.yaml: line 2: yaml: "},
		"a first entry that is none": {replace("threads.yaml", ": ", ": {"), g4 + g8 + gc + flow, "root/threads.yaml: line 1: yaml: "},
		"an entry cut in the middle": {edit("threads.yaml", func(s string, _ *world) string { return s[:strings.Index(s, "head: ")+10] }), g0 + g8 + gc + flow, `root/threads.yaml: line 2: thread "` + ocastest.Suspended + `" at `},
		"a list that is none":        {edit("threads.yaml", func(string, *world) string { return "- a\n- b\n" }), g8 + gc + flow, "root/threads.yaml: line 1: no mapping"},
		"no text":                    {edit("threads.yaml", func(string, *world) string { return "\x00\xff\x01" }), g8 + gc + flow, "root/threads.yaml: line 1: yaml: "},
		"a name of two lines":        {replace("workflows.yaml", "solve", `"a\nb"`), g0 + g4 + g8 + gc, "root/workflows.yaml: line 1: workflow "},
		"a workflow that is no hash": {replace("workflows.yaml", "solve: ", "solve: U"), g0 + g4 + g8 + gc, `root/workflows.yaml: line 1: workflow "solve": `},
		"a head that is a workflow": {edit("threads.yaml", func(s string, w *world) string {
			return strings.Replace(s, string(w.old.Heads[ocastest.Active]), string(w.old.Workflow), 1)
		}), g4 + g8 + gc + flow, ""},
		"a head that is not there": {edit("threads.yaml", func(s string, w *world) string {
			return strings.Replace(s, string(w.old.Heads[ocastest.Active]), "AAAAAAAAAAAAA", 1)
		}), g4 + g8 + gc + flow, ""},
		"a workflow that is a step": {edit("workflows.yaml", func(_ string, w *world) string { return "solve: " + string(w.old.Heads[ocastest.Active]) }), g0 + g4 + g8 + gc, ""},
	}
	for name, damage := range damageKinds() {
		if name == "missing" || name == "a dangling link" || name == "empty" || name == "cut" {
			continue // then it is not there, or another row
		}
		rows["threads.yaml: "+name] = struct {
			damage  func(*testing.T, *world)
			want    string
			problem string
		}{func(t *testing.T, w *world) { t.Helper(); w.ok(damage(t, filepath.Join(w.dir, "root/threads.yaml"))) }, g8 + gc + flow, "root/threads.yaml: "}
	}
	for name, tc := range rows {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			tc.damage(t, w)
			for _, dry := range []bool{true, false} {
				code, text := w.run(dry, "nodes", "root")
				var came strings.Builder
				for line := range strings.Lines(w.outcomes()) {
					if strings.Contains(line, "imported") {
						came.WriteString(line)
					}
				}
				if code != 1 || came.String() != tc.want {
					t.Fatalf("%d, %s: %s, %v", code, text, w.outcomes(), w.got.Problems)
				}
				p := w.got.Problems
				if tc.problem == "" && len(p) > 0 || tc.problem != "" && (len(p) != 1 || !strings.HasPrefix(p[0].String(), tc.problem)) {
					t.Errorf("%v, want %s", p, tc.problem)
				}
			}
			r, err := w.store().Fsck(t.Context(), true)
			if err != nil || !r.OK() {
				t.Errorf("%v, %v", r.Problems, err)
			}
		})
	}
}

// enlargeMember is an archive in which one file has 17 MB.
func enlargeMember(t *testing.T, archive []byte, name string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		b, err2 := io.ReadAll(r)
		if h.Name == name {
			b = append(b, make([]byte, 17<<20)...)
			h.Size = int64(len(b))
		}
		err4 := w.WriteHeader(h)
		_, err3 := w.Write(b)
		if err := errors.Join(err, err2, err3, err4); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

// TestDamagedBundles: of an archive that is cut off, what comes before counts.
func TestDamagedBundles(t *testing.T) {
	w := newWorld(t)
	file := filepath.Join(w.dir, "bundle.tar")
	whole, err := os.ReadFile(file)
	w.ok(err)
	lists := bytes.Index(whole, []byte("vars.jsonl\x00"))
	for name, tc := range map[string]struct {
		bundle []byte
		paths  []string
		code   int
		says   string
		came   int // threads; -1: some
	}{
		"cut before the lists": {whole[:lists-512], []string{"bundle.tar"}, 2, "no list says which of them are threads", 0},
		"cut among the nodes":  {whole[:lists/2+7], []string{"bundle.tar", "root"}, 1, "bundle.tar", -1},
		"cut in the lists":     {whole[:lists+512+300], []string{"bundle.tar"}, 1, "bundle.tar/vars.jsonl: unexpected EOF", 1},
		"a node of 17 MB":      {enlargeMember(t, whole, "cas/"+string(w.old.Heads[ocastest.Ended])+".bin"), []string{"bundle.tar"}, 1, ".bin: larger than 16777216 bytes", 3},
		"the header of a node": {func() []byte {
			b := bytes.Clone(whole)
			b[bytes.Index(b, []byte("cas/"+string(w.old.Heads[ocastest.Ended])))] ^= 1
			return b
		}(), []string{"bundle.tar"}, 1, "bundle.tar: read the archive: ", 3},
		"a header that is damaged":   {bytes.Replace(whole, []byte("vars.jsonl\x00"), []byte("vars.jsonk\x00"), 1), []string{"bundle.tar", "root"}, 1, "bundle.tar: read the archive: ", 4},
		"a line that is damaged":     {bytes.Replace(whole, []byte(`{"created"`), []byte(`{!created"`), 1), []string{"bundle.tar"}, 1, "bundle.tar/vars.jsonl: line 1: ", 3},
		"no archive, beside another": {[]byte(strings.Repeat("x", 1024)), []string{"bundle.tar", "nodes", "root"}, 1, "bundle.tar: read the archive: ", 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.ok(os.WriteFile(filepath.Join(w.dir, "bundle.tar"), tc.bundle, 0o600))
			code, text := w.run(false, tc.paths...)
			if code != tc.code || !strings.Contains(text+fmt.Sprint(w.got.Problems), tc.says) {
				t.Fatalf("%d, %s: %v", code, text, w.got.Problems)
			}
			if n := strings.Count(w.outcomes(), "imported") - strings.Count(w.outcomes(), "solve imported"); n != tc.came && (tc.came >= 0 || n < 0) {
				t.Errorf("%d came:\n%s", n, w.outcomes())
			}
			if code == 2 {
				return
			}
			r, err := w.store().Fsck(t.Context(), true)
			if err != nil || !r.OK() {
				t.Errorf("%v, %v", r.Problems, err)
			}
		})
	}
}
