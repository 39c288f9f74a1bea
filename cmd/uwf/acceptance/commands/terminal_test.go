package commands

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
)

// TestTerminal checks what people see: text, coloured unless they say no, and in
// it no escape but our own.
func TestTerminal(t *testing.T) {
	for _, tt := range []struct {
		environ []string
		want    string
	}{
		{nil, "^\x1b\\[1mone\x1b\\[0m\x1b\\[2m  [0-9A-Z]{13}  flow.yaml\x1b\\[0m\n\\\\x1b\\]0;owned"},
		{[]string{"NO_COLOR=1"}, `^one  [0-9A-Z]{13}  flow.yaml\n\\x1b\]0;owned`},
		{[]string{"TERM=dumb"}, `^one  [0-9A-Z]{13}  flow.yaml\n`},
	} {
		dir := t.TempDir()
		flow := strings.ReplaceAll(oneRole, "description: d\nroles", `description: "\x1b]0;owned\a\u202e"`+"\nroles")
		if err := os.WriteFile(filepath.Join(dir, "flow.yaml"), []byte(flow), 0o600); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		f := &app.Factory{
			IO:      app.IO{In: strings.NewReader(""), Out: &out, Err: &errs, OutTTY: true, ErrTTY: true},
			Environ: tt.environ, Dir: dir, Now: time.Now,
		}
		if code := cli.Execute(t.Context(), f, []string{"workflow", "show", "flow.yaml"}); code != 0 {
			t.Fatalf("exit code %d: %s", code, errs.String())
		}
		if !regexp.MustCompile(tt.want).MatchString(out.String()) {
			t.Errorf("%v: %q", tt.environ, out.String())
		}
	}
}

const oneRole = `name: one
description: d
roles:
  dev:
    description: d
    goal: g
    capabilities: []
    procedure: p
    output: o
    frontmatter: {type: object, properties: {$status: {const: done}}, required: [$status]}
graph:
  $START: {_: {role: dev, prompt: go}}
  dev: {done: {role: $END, prompt: bye}}
`
