package board

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/engine/graph"
	"github.com/united-workforce/uwf/engine/moderator"
	engine "github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/internal/outage"
	"github.com/united-workforce/uwf/internal/text"
)

// refresh is how often the board is written anew on a terminal.
const refresh = 200 * time.Millisecond

// Progress shows on stderr who works, on what and for how long: a board on a terminal, plain
// lines elsewhere.
type Progress struct {
	notes *output.Writer
	raw   io.Writer // the terminal, for the board; nil elsewhere
	width func() int
	now   func() time.Time
	model func(role string) string // the name of a role's model

	mu    sync.Mutex
	board board
	spent moderator.Totals // by the steps that have ended
	drawn int              // lines of the board that are on the terminal
	held  bool             // somebody is asked: nothing is drawn
	stop  context.CancelFunc
	ended sync.WaitGroup
}

// New shows on the Factory's terminal, or as lines where there is none.
func New(f *app.Factory) *Progress {
	ctx, stop := context.WithCancel(context.Background())
	p := &Progress{notes: f.Notes(), now: f.Now, width: f.IO.Columns, stop: stop}
	if app.Live(f) {
		p.raw = f.IO.Err
		p.ended.Go(func() { p.tickClock(ctx) })
	}
	return p
}

// Follow says which thread is shown, the steps that it has, and what was spent on it before,
// for these and for attempts that led to none.
func (p *Progress) Follow(def *workflow.Definition, title string, limits moderator.Limits, steps []gitcas.ChainStep, before moderator.Totals, model func(role string) string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.model, p.spent = model, before
	p.board = board{workflow: def.Name, title: title, limits: limits, done: map[string]int{}}
	for _, n := range graph.Of(def).Nodes {
		if n.Kind == graph.Role {
			p.board.roles = append(p.board.roles, n.Name)
		}
	}
	for _, s := range steps {
		p.board.done[s.Role]++
	}
	p.board.tokens, p.board.cost, p.board.unpriced = before.Tokens, before.CostUSD, before.Unpriced
}

func (p *Progress) tickClock(ctx context.Context) {
	t := time.NewTicker(refresh)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			p.mu.Lock()
			p.drawBoard()
			p.mu.Unlock()
		}
	}
}

// drawBoard writes the board anew, in the place of the last one; the lock is held.
func (p *Progress) drawBoard() {
	if p.raw == nil || p.held {
		return
	}
	lines := p.board.renderLines(p.width(), p.now())
	if len(lines) == 0 {
		return
	}
	_, _ = io.WriteString(p.raw, p.moveBack()+strings.Join(lines, "\n"))
	p.drawn = len(lines)
}

// moveBack moves the cursor to where the board begins, and takes the board away.
func (p *Progress) moveBack() string {
	out := "\r"
	if p.drawn > 1 {
		out += fmt.Sprintf("\x1b[%dA", p.drawn-1)
	}
	p.drawn = 0
	return out + "\x1b[J"
}

// eraseBoard takes the board off the terminal; the lock is held.
func (p *Progress) eraseBoard() {
	if p.raw != nil && p.drawn > 0 {
		_, _ = io.WriteString(p.raw, p.moveBack())
	}
}

// Hold takes the board off the terminal until release is called: somebody is asked.
func (p *Progress) Hold() (release func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.eraseBoard()
	p.held = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.held = false
	}
}

// ShowStarted tells which thread was started.
func (p *Progress) ShowStarted(s engine.Started) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Existed {
		p.notes.Printf("thread %s is alive with this key; going on with it\n", s.Thread)
		return
	}
	p.notes.Printf("thread %s of %s\n", s.Thread, s.Name)
}

// ShowEvent shows what goes on.
func (p *Progress) ShowEvent(ev engine.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b := &p.board
	switch ev.Kind {
	case "agent":
		b.step, b.turn, b.role, b.agent, b.doing, b.checks, b.since, b.output = ev.Step, 0, ev.Role, ev.Agent, "", nil, p.now(), nil
		if b.model = ""; p.model != nil {
			b.model = p.model(ev.Role)
		}
		if p.raw == nil {
			p.notes.Printf("step %d  %s works (%s): %s\n", ev.Step, ev.Role, ev.Agent, output.Line(ev.Text, 60))
		}
		p.drawBoard()
	case "turn":
		b.turn, b.doing = ev.Turn, ev.Text
		p.drawBoard()
	case "tokens":
		b.tokens = p.spent.Tokens + ev.Usage.InputTokens + ev.Usage.OutputTokens
		b.cost, b.unpriced = p.spent.CostUSD+ev.Usage.CostUSD, p.spent.Unpriced || ev.Usage.Unpriced
		p.drawBoard()
	case "notice":
		p.printAbove("note: " + ev.Text)
	case "check":
		b.checks = append(b.checks, output.Line(ev.Text, 40))
		p.printAbove("check: " + ev.Text)
	case "committed", "ended", "suspended":
		p.eraseBoard()
		b.role = "" // until the next agent begins
		if ev.Status == "" {
			p.notes.Printf("step %d  %s waits for a person: %s\n", ev.Step, ev.Role, ev.Text)
			return
		}
		b.done[ev.Role]++
		u := ev.Usage
		p.spent.Add(ev.Role, &u)
		p.notes.Printf("step %d  ", ev.Step)
		p.notes.Bold(ev.Role)
		p.notes.Printf("%s  %s, %d tokens in, %d out, %s\n", moderator.Arrow(ev.Status), text.Took(u.DurationMs), u.InputTokens, u.OutputTokens, text.Dollars(u.CostUSD, u.Unpriced))
	}
}

// Write takes what the agent prints, for the last lines of the board.
func (p *Progress) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for line := range bytes.Lines(data) {
		if s := strings.TrimSpace(string(line)); s != "" {
			p.board.output = append(p.board.output, s)
		}
	}
	if n := len(p.board.output); n > maxOutput {
		p.board.output = p.board.output[n-maxOutput:]
	}
	if p.raw == nil {
		p.notes.Printf("%s", data)
	}
	return len(data), nil
}

// ShowWaiting tells that a server is away.
func (p *Progress) ShowWaiting(w outage.Wait) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printAbove("waiting: " + w.String())
}

// printAbove writes a line of its own above the board; the lock is held.
func (p *Progress) printAbove(s string) {
	p.eraseBoard()
	p.notes.Println(s)
	p.drawBoard()
}

// End takes the board away for good. It may be called twice.
func (p *Progress) End() {
	p.mu.Lock()
	p.eraseBoard()
	p.board.role = ""
	p.mu.Unlock()
	p.stop()
	p.ended.Wait()
}
