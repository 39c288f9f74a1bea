package definition

import (
	"path/filepath"
	"strings"
	"testing"
)

// What an argument can't mean is said once for it; what keeps all of them from being
// found ends the search.
func TestInputsRefuse(t *testing.T) {
	root := writeUnreadable(t)
	writeLoop(t, filepath.Join(root, "empty/loop.yaml"))
	write(t, filepath.Join(root, "empty/script.yaml"), "steps: []\n")
	const loop = "too many levels of symbolic links"
	for _, tt := range []struct {
		name, dir string
		args      []string
		failed    string // file: message; fix
		err       string
	}{
		{"no folders", "folder", nil, "", "list workflows: "},
		{"no definitions", "empty", nil, "", "no definitions in .uwf/workflows"},
		{"empty", "empty", []string{""}, ": an argument is empty; name a file", ""},
		{"can't be read", "empty", []string{"./loop.yaml"}, "./loop.yaml: can't be read: " + loop + "; check the file's permissions", ""},
		{"not there", "empty", []string{"./wholly/else.yaml"}, "./wholly/else.yaml: no such file; check the path", ""},
		{"mistyped", "empty", []string{"./scirpt.yaml"}, "./scirpt.yaml: no such file; did you mean script.yaml?", ""},
		{"name", "empty", []string{"flow"}, "flow: no such file, and no workflow of this name in the folders; name a file, or put the definition into .uwf/workflows", ""},
		{"name, no folders", "folder", []string{"flow"}, "", "look for the workflow flow: "},
		{"name, a file", "file", []string{"flow"}, "", "list workflows: "},
		{"broken pattern", "empty", []string{"["}, `[: the pattern "[" is malformed: a [ needs its ]; correct the pattern`, ""},
		{"pattern", "empty", []string{"x*.yaml"}, "x*.yaml: nothing matches the pattern; check the pattern; ** stands for any number of folders", ""},
		{"folder", ".", []string{"empty"}, "empty: the folder holds no definitions; name a folder with *.yaml definitions, or files", ""},
		{"folder's folders", ".", []string{"folder"}, "", loop},
		{"folder's folders, by a pattern", ".", []string{"fold*"}, "", loop},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := resolver(root, tt.dir)
			r.Root = r.Dir
			in, err := r.FindInputs(tt.args)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q", err, tt.err)
				}
				return
			}
			if err != nil || len(in.Failed) != 1 || len(in.Files) != 0 {
				t.Fatalf("%+v, %v", in, err)
			}
			if f := in.Failed[0]; f.File+": "+f.Message+"; "+f.Fix != tt.failed {
				t.Errorf("%q, want %q", f, tt.failed)
			}
		})
	}
	// A folder may go or change between two looks at it.
	in := &Inputs{}
	if err := resolver(root, "empty").addFolder(in, "script.yaml", true); err != nil || len(in.Failed) != 1 ||
		in.Failed[0].Message != "can't be read: not a directory" {
		t.Errorf("%+v, %v", in, err)
	}
}
