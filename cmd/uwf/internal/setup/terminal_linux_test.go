//go:build !race

// Not under the race detector: the library that draws the questions ends its readers
// with a race of its own, now and then.

package setup

import (
	"context"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/testpty"
)

// askAt asks at a terminal.
func askAt(p *testpty.Terminal) func(context.Context, []Question) error {
	return func(_ context.Context, questions []Question) error {
		return (&terminal{in: p.TTY, out: p.TTY}).ask(p.Context, questions)
	}
}

// A person at a terminal: arrows, a key that is not shown, a slip that is told, and
// ctrl-C. What is pasted is a key like any other.
func TestTerminal(t *testing.T) {
	w := newWorld(t)
	p := testpty.NewTerminal(t)
	go func() {
		p.Sees("Which provider", "\x1b[B\x1b[A\r") // down, up: OpenAI
		p.Sees("Which model", "x\x15\r")           // a slip, deleted: the usual one
		p.Sees("I type it now", "\x1b[B\x1b[B\r")
		p.Sees("this provider needs a key", "\x1b[A\r") // typed
		p.Sees("The key", "two words\r")
		p.Sees("this is no key", "\x15"+key+"\r")
		p.Sees("write it down", "\r")
	}()
	base := provider(t, keyed)
	w.run(askAt(p), "--base-url", base, "--user", "--agent", "builtin")
	if w.code != 0 || !strings.Contains(w.out.String(), `"tested": true`) || !strings.Contains(w.file("home", ".uwf", ".env"), key) {
		t.Errorf("%d %s\n%q", w.code, w.errs.String(), p.Shown())
	}
	if strings.Contains(p.Shown(), key) {
		t.Error("the key is shown while it is typed")
	}

	w, p = newWorld(t), testpty.NewTerminal(t)
	go p.Sees("Which provider", "\x03")
	w.run(askAt(p))
	if w.code != 1 || !strings.Contains(w.errs.String(), "stopped: nothing was written") || w.file("home", ".uwf", "config.yaml") != "" {
		t.Errorf("%d %s", w.code, w.errs.String())
	}
}

// Shift+tab goes back from a question whose answer is wrong so far, and the form still
// listens. What was typed there counts for nothing where it is not asked any more.
func TestGoingBack(t *testing.T) {
	const back, up, down, clearLine = "\x1b[Z", "\x1b[A", "\x1b[B", "\x15"
	w := newWorld(t)
	p := testpty.NewTerminal(t)
	go func() {
		p.Sees("Which provider", up+"\r") // the last one: any address
		p.Sees("What is its address", "nonsense\r")
		p.Sees("write an address such as", back)
		p.Sees("Which provider", "\r")
		p.Sees("nonsense", clearLine+"more nonsense"+back) // before enter was pressed
		p.Sees("Which provider", down+"\r")
		p.Sees("Empty: gpt", back)
		p.Sees("Which provider", up+"\r")
		p.Sees("more nonsense", back)
		p.Sees("Which provider", down+"\r")
		p.Sees("Empty: gpt", "\r")
		p.Sees("Where is the key", down+"\r")
		p.Sees("The key", "two words"+back)   // no key
		p.Sees("Where is the key", down+back) // there is none, which is wrong here
		p.Sees("Empty: gpt", "\r")
		p.Sees("Where is the key", "\r")
		p.Sees("this provider needs a key", back)
		p.Sees("Empty: gpt", "\r")
		p.Sees("Where is the key", up+up+"\r")
		p.Sees("Which variable", "not a name\r")
		p.Sees("is no name", back)
		p.Sees("Where is the key", down+"\r")
		p.Sees("The key", clearLine+key+"\r")
		p.Sees("https://api.openai.com/v1", back)
		p.Sees("The key", "\r")
		p.Sees("Write it down", "\r")
	}()
	w.run(askAt(p), "--user", "--agent", "builtin", "--no-test")
	settings := w.file("home", ".uwf", "config.yaml")
	if w.code != 0 || !strings.Contains(settings, "https://api.openai.com/v1") || strings.Contains(settings, "nonsense") || !strings.Contains(w.file("home", ".uwf", ".env"), key) {
		t.Errorf("%d %s\n%s\n%s", w.code, w.errs.String(), settings, p.Screen())
	}
}
