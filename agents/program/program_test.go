package program

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// put makes a file, or a link where the text begins with "→".
func put(t *testing.T, top, name, text string) {
	t.Helper()
	file := filepath.Join(top, name)
	err := os.MkdirAll(filepath.Dir(file), 0o755)
	if target, link := cutLink(text); link {
		err = errors.Join(err, os.Symlink(target, file))
	} else {
		err = errors.Join(err, os.WriteFile(file, []byte(text), 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
}

func cutLink(text string) (string, bool) {
	const arrow = "→"
	if len(text) > len(arrow) && text[:len(arrow)] == arrow {
		return text[len(arrow):], true
	}
	return "", false
}

func TestLocate(t *testing.T) {
	const pkg = "lib/node_modules/@openai/codex/"
	for _, c := range []struct {
		name    string
		files   map[string]string
		file    string
		places  []string
		version string
	}{
		{"npm, script", map[string]string{
			"bin/codex": "→../" + pkg + "bin/codex.js", pkg + "bin/codex.js": "#!/usr/bin/env node\n", pkg + "package.json": `{"version":"0.169.0"}`, "node/bin/node": "ELF",
		}, "bin/codex", []string{pkg + "bin/codex.js", "lib/node_modules", "node/bin/node"}, "0.169.0"},
		{"npm, a package in another", map[string]string{
			"bin/x": "→../lib/node_modules/x/node_modules/y/cli", "lib/node_modules/x/node_modules/y/cli": "ELF", "lib/node_modules/x/package.json": `{"version":"1.0.0"}`,
			"lib/node_modules/x/node_modules/y/package.json": `{"version":"2.0.0-beta.1"}`,
		}, "bin/x", []string{"lib/node_modules/x/node_modules/y/cli", "lib/node_modules"}, "2.0.0-beta.1"},
		{"npm, no version", map[string]string{"lib/node_modules/x/cli": "ELF", "lib/node_modules/x/package.json": `{`}, "lib/node_modules/x/cli",
			[]string{"lib/node_modules/x/cli", "lib/node_modules"}, ""},
		{"a vendor's installer", map[string]string{"bin/claude": "→../share/claude/versions/2.1.330", "share/claude/versions/2.1.330": "ELF"}, "bin/claude",
			[]string{"share/claude/versions/2.1.330"}, "2.1.330"},
		{"a virtual environment", map[string]string{
			"bin/hermes": "→../venv/bin/hermes", "venv/pyvenv.cfg": "", "venv/bin/hermes": "#!" + "TOP/venv/bin/python -I\n", "venv/bin/python": "→../../py/bin/python3", "py/bin/python3": "ELF",
		}, "bin/hermes", []string{"venv/bin/hermes", "venv", "py/bin/python3"}, ""},
		{"env with options", map[string]string{"x": "#!/usr/bin/env -S A=b node --flag\n", "node/bin/node": "ELF"}, "x", []string{"x", "node/bin/node"}, ""},
		{"nobody runs it", map[string]string{"x": "#!/usr/bin/env nowhere\n"}, "x", []string{"x"}, ""},
		{"an endless first line", map[string]string{"x": "#!" + string(make([]byte, 4096))}, "x", []string{"x"}, ""},
		{"empty", map[string]string{"x": ""}, "x", []string{"x"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			top, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			for name, text := range c.files {
				if rest, ok := cutTop(text); ok {
					text = "#!" + top + rest
				}
				put(t, top, name, text)
			}
			find := func(name string) (string, error) {
				if name == "node" {
					return filepath.Join(top, "node/bin/node"), nil
				}
				return "", os.ErrNotExist
			}
			got, err := Locate(filepath.Join(top, c.file), find)
			var want []string
			for _, p := range c.places {
				want = append(want, filepath.Join(top, p))
			}
			slices.Sort(want)
			if err != nil || got.Version != c.version || !slices.Equal(got.Places, want) {
				t.Errorf("%+v %v, want %q %q", got, err, want, c.version)
			}
		})
	}
	if _, err := Locate(filepath.Join(t.TempDir(), "none"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
}

func cutTop(text string) (string, bool) {
	const top = "#!TOP"
	if len(text) > len(top) && text[:len(top)] == top {
		return text[len(top):], true
	}
	return "", false
}

func TestRange(t *testing.T) {
	r := Range{Min: "2.1.300", Tested: "2.1.330"}
	for version, want := range map[string][2]bool{
		"2.1.330": {true, true}, "v2.1.300": {true, true}, "2.1.330-beta.1": {true, true}, "2.1.299": {false, true}, "2.1.331": {false, true},
		"2.10.0": {false, true}, "1.9.400": {false, true}, "2.1": {false, true}, "": {false, false}, "latest": {false, false}, "2.-1.3": {false, false},
	} {
		if in, ok := r.Contains(version); in != want[0] || ok != want[1] {
			t.Errorf("%q: %v %v", version, in, ok)
		}
	}
	for printed, want := range map[string]string{"2.1.330 (Claude Code)\n": "2.1.330", "codex-cli 0.169.0": "0.169.0", "no version": ""} {
		if got := FindVersion(printed); got != want {
			t.Errorf("%q: %q", printed, got)
		}
	}
}
