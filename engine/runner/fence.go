package runner

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Fence keeps what agents print from being read as workflow commands: a runner takes
// a line like "::add-mask::" or "::error::" from a job's output for one. Between
// "::stop-commands::WORD" and "::WORD::" it does not. Nobody but this process knows
// the word, and no word is used twice.
//
// The runner reads stdout and stderr of a job one beside the other: write fenced text
// and commands of one's own to the same of the two, and Close before each command.
type Fence struct {
	mu   sync.Mutex
	w    io.Writer
	rand io.Reader
	word string // of the open block; empty: none is open
	mid  bool   // the last line has no end yet
}

// NewFence fences what is written to it, on its way to w.
func NewFence(w io.Writer, rand io.Reader) *Fence { return &Fence{w: w, rand: rand} }

// Write opens a block where none is open. Without a random word nothing is written.
func (f *Fence) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(p) == 0 {
		return 0, nil
	}
	if f.word == "" {
		if err := f.open(); err != nil {
			return 0, err
		}
	}
	n, err := f.w.Write(p)
	if n > 0 {
		f.mid = p[n-1] != '\n'
	}
	return n, err
}

func (f *Fence) open() error {
	var b [20]byte
	if _, err := io.ReadFull(f.rand, b[:]); err != nil {
		return fmt.Errorf("fence what an agent prints: %w", err)
	}
	word := "uwf-" + hex.EncodeToString(b[:])
	if _, err := io.WriteString(f.w, "::stop-commands::"+word+"\n"); err != nil {
		return errors.Join(errors.New("fence what an agent prints"), err)
	}
	f.word, f.mid = word, false
	return nil
}

// Close ends the block, so that commands count again. A later Write opens another.
func (f *Fence) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.word == "" {
		return nil
	}
	end := "::" + f.word + "::\n"
	if f.mid {
		end = "\n" + end
	}
	f.word, f.mid = "", false
	_, err := io.WriteString(f.w, end)
	return err
}
