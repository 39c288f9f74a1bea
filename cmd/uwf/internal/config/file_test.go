package config

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gopkg.in/yaml.v3"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/config/edit"
)

func setTo(path string, value string) func([]byte) ([]byte, error) {
	c := edit.Change{Path: strings.Split(path, "/"), Value: &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}}
	return func(old []byte) ([]byte, error) { return edit.Apply(old, c) }
}

func userFile(t *testing.T) *File {
	t.Helper()
	home := t.TempDir()
	f := &app.Factory{Environ: []string{"HOME=" + home}, Dir: home}
	x, err := OpenFile(f, User)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Of many who change the file at once nobody loses a change.
func TestParallelChanges(t *testing.T) {
	x := userFile(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if _, err := x.Apply(t.Context(), setTo(fmt.Sprintf("agents/a%d/command", i), "c")); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	b, err := os.ReadFile(x.Path)
	if err != nil || strings.Count(string(b), "command: c") != 8 {
		t.Errorf("%v\n%s", err, b)
	}
	entries, err := os.ReadDir(filepath.Dir(x.Path))
	if err != nil || len(entries) != 1 {
		t.Errorf("something is left beside the file: %v %v", entries, err)
	}
}

// A file that others could read is closed to them by the next change.
func TestModes(t *testing.T) {
	x := userFile(t)
	if err := os.MkdirAll(filepath.Dir(x.Path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(x.Path, []byte("sandbox: auto\n"), 0o644); err != nil { //nolint:gosec // what the test is about
		t.Fatal(err)
	}
	if changed, err := x.Apply(t.Context(), setTo("sandbox", "require")); err != nil || !changed {
		t.Fatal(changed, err)
	}
	info, err := os.Stat(x.Path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// What is refused leaves the file, and nothing beside it.
func TestRefusedChange(t *testing.T) {
	x := userFile(t)
	if _, err := x.Apply(t.Context(), setTo("limits/tokens", "lots")); app.ExitCodeOf(err) != 2 {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("stopped"))
	if err := os.WriteFile(x.Path+".lock", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Apply(ctx, setTo("sandbox", "off")); err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("waits although nobody does any more: %v", err)
	}
	entries, err := os.ReadDir(filepath.Dir(x.Path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
}

// No line of a file is shown with a key in it, wherever it stands.
func TestExcerptHidesKeys(t *testing.T) {
	const key = "sk-proj-abcdefghij0123456789"
	for _, line := range []string{
		"apiKey: " + key, "  apiKeyEnv: \"" + key + "\"", "x: {apiKey: " + key + ", b: c}", "apiKey: '" + key,
		key, "- " + key, "baseUrl: https://u:" + key + "@h", "env: {API_TOKEN: short1}", "PASSWORD: geheim", "apikey : short1 # once another",
	} {
		source, _ := quoteLine(line, 1, 1, func(s string) string { return s })
		for _, secret := range []string{key, "short1", "geheim"} {
			if strings.Contains(line, secret) && strings.Contains(source, secret) {
				t.Errorf("%q shows as %q", line, source)
			}
		}
	}
	source, caret := quoteLine("a\n  tokens: lots\r\n", 2, 11, func(s string) string { return s })
	if source != "  tokens: lots" || caret != "          ^" {
		t.Errorf("%q %q", source, caret)
	}
	for _, at := range [][2]int{{0, 1}, {9, 1}, {1, 0}, {1, 99}} {
		quoteLine("a\n", at[0], at[1], func(s string) string { return s })
	}
}
