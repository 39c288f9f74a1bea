package patch_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"

	"github.com/united-workforce/uwf/engine/patch"
)

// TestIDs: patch ids tell the same changes from others as git patch-id does.
func TestIDs(t *testing.T) {
	lines := func(from, to int) (out string) {
		for n := from; n <= to; n++ {
			out += fmt.Sprintf("line %d\n", n)
		}
		return out
	}
	changes := map[string]struct{ old, new string }{
		"a line":             {lines(1, 20), lines(1, 9) + "new\n" + lines(11, 20)},
		"the same, lower":    {lines(-9, 20), lines(-9, 9) + "new\n" + lines(11, 20)},
		"the same, cut":      {lines(5, 15), lines(5, 9) + "new\n" + lines(11, 15)},
		"another line":       {lines(1, 20), lines(1, 10) + "new\n" + lines(12, 20)},
		"another text":       {lines(1, 20), lines(1, 9) + "newer\n" + lines(11, 20)},
		"with a space":       {lines(1, 20), lines(1, 9) + "ne w\n" + lines(11, 20)},
		"other surroundings": {lines(1, 8) + "x\n" + lines(10, 20), lines(1, 8) + "x\nnew\n" + lines(11, 20)},
		"far surroundings":   {"x\n" + lines(2, 20), "x\n" + lines(2, 9) + "new\n" + lines(11, 20)},
		"two places":         {lines(1, 40), lines(1, 9) + "new\n" + lines(11, 29) + "new\n" + lines(31, 40)},
		"no end of line":     {lines(1, 9) + "line 10", lines(1, 9) + "new"},
		"a new file":         {"", "new\n"},
		"another new file":   {"", "newer\n"},
		"a file less":        {"new\n", ""},
	}

	ids, gits := map[string]string{}, map[string]string{}
	dir := t.TempDir()
	for name, c := range changes {
		var file patch.File
		for side, text := range map[string]string{"a": c.old, "b": c.new} {
			path := filepath.Join(dir, side, "f.txt")
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			_ = os.Remove(path) // another change's, if it is there
			if text == "" {
				continue
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s := patch.Side{ID: plumbing.ComputeHash(plumbing.BlobObject, []byte(text)), Mode: filemode.Regular, Data: []byte(text)}
			file.Path = "f.txt"
			if side == "a" {
				file.Old = s
			} else {
				file.New = s
			}
		}

		id, err := patch.ID([]patch.File{file}, time.Now)
		if err != nil {
			t.Fatal(err)
		}

		cmd := exec.CommandContext(t.Context(), "sh", "-c", "git diff --no-index --no-prefix a b | sed 's# a/# #; s# b/# #' | git patch-id --verbatim")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		theirs, _, ok := strings.Cut(string(out), " ")
		if err != nil || !ok {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
		ids[name], gits[name] = id, theirs
	}

	for a := range changes {
		for b := range changes {
			if (ids[a] == ids[b]) != (gits[a] == gits[b]) {
				t.Errorf("%s and %s: the same %v, for git %v", a, b, ids[a] == ids[b], gits[a] == gits[b])
			}
		}
	}
	if ids["a line"] != ids["the same, lower"] {
		t.Error("a change has another id where it stands lower")
	}

	binary := func(text string) string {
		id, err := patch.ID([]patch.File{{Path: "f", New: patch.Side{ID: plumbing.ComputeHash(plumbing.BlobObject, []byte(text)), Mode: filemode.Regular, Data: []byte(text)}}}, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	if binary("\x00a") == binary("\x00b") {
		t.Error("files that are no text are not told apart by their content")
	}
}
