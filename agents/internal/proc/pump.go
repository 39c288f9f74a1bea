package proc

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// pump carries what a program prints to a writer. It uses pipes of its own, not
// those of os/exec, because a daemon may hold the other end when the program has
// ended.
type pump struct {
	r, w *os.File // both nil: discard
	dst  io.Writer
	stop context.CancelCauseFunc
	done chan struct{}
	fail error // of dst; read after done
}

func newPump(dst io.Writer, stop context.CancelCauseFunc) (*pump, error) {
	p := &pump{dst: dst, stop: stop, done: make(chan struct{})}
	if dst == nil {
		close(p.done)
		return p, nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe for the program's output: %w", err)
	}
	p.r, p.w = r, w
	go p.copyOutput()
	return p, nil
}

// copyOutput goes on reading after dst has failed: the program is being stopped, and
// must not hang on a full pipe meanwhile.
func (p *pump) copyOutput() {
	defer close(p.done)
	buf := make([]byte, 32<<10)
	for {
		n, err := p.r.Read(buf)
		if n > 0 && p.fail == nil {
			if _, werr := p.dst.Write(buf[:n]); werr != nil {
				p.fail = werr
				p.stop(werr)
			}
		}
		if err != nil {
			return
		}
	}
}

// closeWriter closes our copy of the writing end, so that the reader sees the end.
func (p *pump) closeWriter() {
	if p.w != nil {
		_ = p.w.Close()
	}
}

// abandonPump ends a pump whose program never ran.
func (p *pump) abandonPump() {
	p.closeWriter()
	p.waitDrained()
}

// waitDrained waits until everything printed is at the writer.
func (p *pump) waitDrained() {
	if p.r == nil {
		return
	}
	_ = p.r.SetReadDeadline(time.Now().Add(drainFor))
	<-p.done
	_ = p.r.Close()
}
