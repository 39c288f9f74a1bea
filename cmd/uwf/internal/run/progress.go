package run

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/output"
	engine "github.com/united-workforce/uwf/engine/thread"
	"github.com/united-workforce/uwf/internal/outage"
	"github.com/united-workforce/uwf/internal/text"
)

// refresh is how often the live line is written anew on a terminal.
const refresh = 200 * time.Millisecond

// liveWidth is the length of the live line, in characters.
const liveWidth = 79

// progress shows on stderr who works, on what and for how long: a live line on a
// terminal, plain lines elsewhere.
type progress struct {
	notes *output.Writer
	raw   io.Writer // the terminal, for the live line; nil elsewhere
	now   func() time.Time

	mu    sync.Mutex
	line  string // what the live line says, without time and cost
	cost  string
	since time.Time // when that began
	stop  context.CancelFunc
	ended sync.WaitGroup
}

func newProgress(f *app.Factory) *progress {
	ctx, stop := context.WithCancel(context.Background())
	p := &progress{notes: f.Notes(), now: f.Now, stop: stop}
	if f.IO.ErrTTY {
		p.raw = f.IO.Err
		p.ended.Go(func() { p.tickClock(ctx) })
	}
	return p
}

func (p *progress) tickClock(ctx context.Context) {
	t := time.NewTicker(refresh)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			p.mu.Lock()
			p.drawLine()
			p.mu.Unlock()
		}
	}
}

// drawLine writes the live line; the lock is held.
func (p *progress) drawLine() {
	if p.raw == nil || p.line == "" {
		return
	}
	line := fmt.Sprintf("%s  %s", p.now().Sub(p.since).Round(time.Second), p.cost)
	// One line of a terminal of eighty columns: the end, which changes, is kept.
	room := max(liveWidth-len(line)-2, 10)
	_, _ = fmt.Fprintf(p.raw, "\r\x1b[K%s  %s", output.Line(p.line, room), line)
}

// eraseLine takes the live line away; the lock is held.
func (p *progress) eraseLine() {
	if p.raw != nil && p.line != "" {
		_, _ = fmt.Fprint(p.raw, "\r\x1b[K")
	}
	p.line = ""
}

func (p *progress) showStarted(s engine.Started) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Existed {
		p.notes.Printf("thread %s is alive with this key; going on with it\n", s.Thread)
		return
	}
	p.notes.Printf("thread %s of %s\n", s.Thread, s.Name)
}

func (p *progress) showEvent(ev engine.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch ev.Kind {
	case "agent":
		p.line, p.cost, p.since = fmt.Sprintf("step %d  %s works (%s): %s", ev.Step, ev.Role, ev.Agent, output.Line(ev.Text, 60)), "", p.now()
		if p.raw == nil {
			p.notes.Printf("%s\n", p.line)
		}
		p.drawLine()
	case "tokens":
		p.cost = fmt.Sprintf("%d tokens, %s", ev.Usage.InputTokens+ev.Usage.OutputTokens, text.Dollars(ev.Usage.CostUSD, ev.Usage.Unpriced))
		p.drawLine()
	case "notice":
		p.printAbove("note: " + ev.Text)
	case "check":
		p.printAbove("check: " + ev.Text)
	case "committed", "ended", "suspended":
		p.eraseLine()
		if ev.Status == "" {
			p.notes.Printf("step %d  %s waits for a person: %s\n", ev.Step, ev.Role, ev.Text)
			return
		}
		p.notes.Printf("step %d  ", ev.Step)
		p.notes.Bold(ev.Role)
		u := ev.Usage
		p.notes.Printf(" → %s  %s, %d tokens in, %d out, %s\n", ev.Status, text.Took(u.DurationMs), u.InputTokens, u.OutputTokens, text.Dollars(u.CostUSD, u.Unpriced))
	}
}

// showWaiting tells that a server is away.
func (p *progress) showWaiting(w outage.Wait) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printAbove("waiting: " + w.String())
}

// printAbove writes a line of its own above the live line; the lock is held.
func (p *progress) printAbove(s string) {
	line := p.line
	p.eraseLine()
	p.notes.Println(s)
	p.line = line
	p.drawLine()
}

// endLine ends the live line. It may be called twice.
func (p *progress) endLine() {
	p.mu.Lock()
	p.eraseLine()
	p.mu.Unlock()
	p.stop()
	p.ended.Wait()
}
