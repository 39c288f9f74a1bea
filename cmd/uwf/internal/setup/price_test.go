package setup

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What a model costs is known, said, asked for, or said to be unknown; and nothing that was said
// of one address is kept for another.
func TestPrice(t *testing.T) {
	w := newWorld(t)
	const far = "--base-url=https://models.example/v1"
	for _, c := range []struct {
		name, flags string
		file        string // is in the settings; with ! it is not
		said        string
		code        int
	}{
		{"on this machine", "--base-url=http://127.0.0.1:8000/v1", "price: {input: 0, output: 0}", "its price is written down as 0", 0},
		{"moved away", far, "!price", "what m costs is unknown, so no limit on cost can be kept: say it with uwf setup --price IN,OUT", 0},
		{"said", far + " --price=2,10.5", "price: {input: 2, output: 10.5}", "", 0},
		{"kept", far, "price: {input: 2, output: 10.5}", "", 0},
		{"said anew", far + " --price=$3,$4", "price: {input: 3, output: 4}", "", 0},
		{"nothing", far + " --price=0", "price: {input: 0, output: 0}", "", 0},
		{"one number", far + " --price=2", "", "such as 2,10", 2},
		{"below nothing", far + " --price=-1,2", "", "such as 2,10", 2},
		{"no number", far + " --price=NaN,2", "", "such as 2,10", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.run(nil, append(strings.Fields(c.flags), "--provider=custom", "--model=m", "--no-test", "--yes")...)
			file, not := strings.CutPrefix(c.file, "!")
			if got := w.file("home", ".uwf", "config.yaml"); w.code != c.code || strings.Contains(got, file) == not {
				t.Errorf("exit code %d, settings:\n%s", w.code, got)
			}
			if said := w.errs.String(); !strings.Contains(said, c.said) || c.code == 0 && c.said == "" && strings.Contains(said, "cost") {
				t.Errorf("said:\n%s", said)
			}
		})
	}
}

// Where something else goes before the settings that were written, it is said.
func TestOverridesTold(t *testing.T) {
	w := newWorld(t, "UWF_MODEL=other")
	repo := filepath.Join(w.dir, ".uwf", "config.yaml")
	if err := os.MkdirAll(filepath.Dir(repo), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(repo, []byte("models: {big: {provider: ollama, name: big}}\nproviders: {ollama: {}}\nmodelOverrides: {solve-issue: {planner: big}}\nagentOverrides: {solve-issue: {reviewer: mock}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.run(nil, "--provider=ollama", "--no-test", "--yes")
	for _, want := range []string{
		"$UWF_MODEL goes before this: by it the model ollama/other works here",
		"this repository gives the role planner of solve-issue to big (" + repo + ":3:32); for a run of yours: --model 'planner=NAME'",
		"this repository gives the role reviewer of solve-issue to mock (" + repo + ":4:32); for a run of yours: --agent 'reviewer=NAME'",
	} {
		if !strings.Contains(w.errs.String(), want) {
			t.Errorf("not said: %s\n%s", want, w.errs.String())
		}
	}
}

// A price that is not known is asked for, until it is one or nothing; one that is known is not.
func TestPriceQuestion(t *testing.T) {
	const question = "What does the model cost?"
	for _, c := range []struct{ name, lines, flags, file string }{
		{"said", "3\ntwo\n2,10\ny\n", "--base-url=https://models.example/v1", "price: {input: 2, output: 10}"},
		{"not known", "3\n\ny\n", "--base-url=https://models.example/v1", "!price"},
		{"on this machine", "3\ny\n", "--base-url=http://127.0.0.1:8000/v1", "price: {input: 0, output: 0}"},
		{"by the flag", "3\ny\n", "--base-url=https://models.example/v1 --price=3,4", "price: {input: 3, output: 4}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			var screen bytes.Buffer
			w.run((&terminal{in: io.NopCloser(strings.NewReader(c.lines)), out: &screen, plain: true}).ask,
				append(strings.Fields(c.flags), "--provider=custom", "--model=m", "--user", "--agent=builtin", "--no-test")...)
			file, not := strings.CutPrefix(c.file, "!")
			if got := w.file("home", ".uwf", "config.yaml"); w.code != 0 || strings.Contains(got, file) == not {
				t.Errorf("exit code %d %s\n%s\n%s", w.code, w.errs.String(), got, screen.String())
			}
			if asked := strings.Contains(screen.String(), question); asked != (c.name == "said" || c.name == "not known") {
				t.Errorf("asked: %v\n%s", asked, screen.String())
			}
		})
	}
}
