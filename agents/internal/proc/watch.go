package proc

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/internal/lists"
)

// WatchName is the command of this binary that watches over a program. It is none that
// people call.
const WatchName = "process-watch"

// A watcher is a process between this one and a program. It holds the reading end of a
// pipe whose writing end is ours alone: the kernel closes that however we end, and so
// tells the watcher to end the program and whatever came of it. On Linux orphans are
// given to the watcher, so that it finds those, too, that left the program's session
// and group and closed all files.

// The descriptors of a watcher, besides the program's own standard ones.
const (
	ordersFD = 3 // from us: an order as a line of JSON, then a byte for each SIGTERM to pass on
	newsFD   = 4 // to us: a beginning and an ending as JSON
)

// dismissFor bounds the wait for a watcher whose time has come: it sweeps as we do.
const dismissFor = sweepFor + time.Second

// order says what to run. Where and with what output is the watcher's own. Words have any
// bytes, which JSON's texts have not.
type order struct {
	Argv [][]byte `json:"argv"`
	Env  [][]byte `json:"env"`
	Mark string   `json:"mark"`
}

func encodeWords(words []string) [][]byte {
	return lists.Map(words, func(word string) []byte { return []byte(word) })
}

func decodeWords(raw [][]byte) []string {
	// Never nil: that would be this process's own environment.
	return lists.Map(raw, func(word []byte) string { return string(word) })
}

// beginning says that the program runs, or why it doesn't.
type beginning struct {
	PID   int           `json:"pid,omitempty"`
	Errno syscall.Errno `json:"errno,omitempty"`
	Error string        `json:"error,omitempty"`
}

// ending says how the program ended.
type ending struct {
	Code   int            `json:"code"`
	Signal syscall.Signal `json:"signal"`
	Left   int            `json:"left"` // see Result.Left
}

var errNoEnding = errors.New("its watcher ended without saying what became of it, as if it had been killed; run it again")

// watcher is our side of a watcher.
type watcher struct {
	orders *os.File
	news   *os.File
	in     *json.Decoder
	pid    int // of the program
}

// launchWatched starts a program under a watcher, which is not bound to die with us.
func launchWatched(watch []string, cmd *exec.Cmd, mark string) (*group, error) {
	theirs, orders, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe to its watcher: %w", err)
	}
	news, ours, err := os.Pipe()
	if err != nil {
		_, _ = theirs.Close(), orders.Close()
		return nil, fmt.Errorf("making a pipe from its watcher: %w", err)
	}
	w := &watcher{orders: orders, news: news, in: json.NewDecoder(news)}
	o := order{Argv: encodeWords(cmd.Args), Env: encodeWords(cmd.Env), Mark: mark}
	cmd.Path, cmd.Args, cmd.Env = watch[0], watch, watcherEnviron()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.ExtraFiles = []*os.File{theirs, ours}
	g, err := launchSession(cmd, mark)
	_, _ = theirs.Close(), ours.Close()
	if err != nil {
		w.closePipes()
		return nil, fmt.Errorf("its watcher %s: %w", watch[0], err)
	}
	if err := w.startProgram(o); err != nil {
		w.closePipes()
		if !g.isReaped() {
			_ = syscall.Kill(g.leader, syscall.SIGKILL) // it may be anything
		}
		<-g.done
		g.forgetGroup()
		return nil, err
	}
	g.watcher = w
	g.sessions[w.pid] = struct{}{}
	return g, nil
}

// watcherEnviron is all that a watcher finds in its own environment: nothing of the
// program's, some of which changes how programs run. It shows no memory where it crashes,
// and doesn't wait at its end where races are looked for.
func watcherEnviron() []string { return []string{"GOTRACEBACK=none", "GORACE=atexit_sleep_ms=0"} }

// startProgram has the program started.
func (w *watcher) startProgram(o order) error {
	var b beginning
	err := json.NewEncoder(w.orders).Encode(o)
	if err == nil {
		err = w.in.Decode(&b)
	}
	if err != nil {
		return fmt.Errorf("%w (%w)", errNoEnding, err)
	}
	switch {
	case b.Errno != 0:
		return fmt.Errorf("%s: %w", strings.TrimSuffix(b.Error, ": "+b.Errno.Error()), b.Errno)
	case b.Error != "":
		return errors.New(b.Error)
	}
	w.pid = b.PID
	return nil
}

// terminateProgram has SIGTERM sent to the program's group. A watcher that has ended can't be
// asked any more, and need not.
func (w *watcher) terminateProgram() { _, _ = w.orders.Write([]byte{'T'}) }

// dismissWatcher ends what is left of the program, and waits for the watcher's own end. One
// that is stuck is left to the sweep.
func (w *watcher) dismissWatcher(done <-chan struct{}) {
	if w == nil {
		return
	}
	_ = w.orders.Close()
	waitFor(done, dismissFor)
}

// readEnding says how the program ended, by what its watcher said before its own end. One
// that was killed took the program with it: by that signal both ended.
func (w *watcher) readEnding(res *Result) error {
	var e ending
	err := w.in.Decode(&e)
	switch {
	case err == nil:
		res.Code, res.Signal, res.Left = e.Code, e.Signal, res.Left+e.Left
	case res.Signal == 0:
		res.Code = -1
		return errNoEnding
	}
	return nil
}

func (w *watcher) closePipes() {
	if w != nil {
		_, _ = w.orders.Close(), w.news.Close()
	}
}

// Watch makes this process a watcher, where its command line says so; it returns when
// all processes of its program have ended. A program's main calls it before anything
// else. Ours is false for every other command line.
func Watch(args []string) (code int, ours bool) {
	if len(args) != 2 || args[1] != WatchName {
		return 0, false
	}
	if err := runWatcher(); err != nil {
		fmt.Fprintf(os.Stderr, "uwf: watch over a program: %v\n", err)
		return 126, true
	}
	return 0, true
}

// runWatcher runs what it is ordered to. An error is one that nobody else would hear of.
func runWatcher() error {
	orders, news := os.NewFile(ordersFD, "orders"), os.NewFile(newsFD, "news")
	unix.CloseOnExec(ordersFD)
	unix.CloseOnExec(newsFD)
	in := bufio.NewReader(orders)
	line, err := in.ReadBytes('\n')
	var o order
	if err != nil || json.Unmarshal(line, &o) != nil || len(o.Argv) == 0 {
		return errors.New("only uwf itself calls this")
	}
	// They are the program's to heed: ignored ones it would inherit.
	for _, sig := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(sig) { // nohup: the program is to ignore it too
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
	out := json.NewEncoder(news)
	g, err := launchHidden(o)
	if err != nil {
		b := beginning{Error: err.Error()}
		_ = errors.As(err, &b.Errno)
		return out.Encode(b)
	}
	_ = out.Encode(beginning{PID: g.leader}) // nobody there: the orders end as well
	err = releaseOutput()
	if err == nil {
		g.obeyOrders(in)
	}
	left := g.sweepUntilGone()
	<-g.done
	e := ending{Left: left}
	e.Code, e.Signal = g.exitStatus()
	if err == nil {
		_ = out.Encode(e)
	}
	return err
}

// launchHidden starts the program in a process that it can't look into.
func launchHidden(o order) (*group, error) {
	if err := hideMemory(); err != nil {
		return nil, fmt.Errorf("hiding its watcher: %w", err)
	}
	argv := decodeWords(o.Argv)
	return launchSession(&exec.Cmd{
		Path: argv[0], Args: argv, Env: decodeWords(o.Env), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, SysProcAttr: sessionAttributes(),
	}, o.Mark)
}

// releaseOutput takes this process's hands off the program's output, which ends when the
// program closes it, and off its folder.
func releaseOutput() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	for fd := range 3 {
		if err := replaceFile(int(null.Fd()), fd); err != nil {
			return fmt.Errorf("let go of file %d: %w", fd, err)
		}
	}
	return errors.Join(null.Close(), os.Chdir("/"))
}

// obeyOrders does as it is told until the program ends, or the orders do.
func (g *group) obeyOrders(orders io.ByteReader) {
	asked, over := make(chan struct{}), make(chan struct{})
	go func() {
		for {
			if _, err := orders.ReadByte(); err != nil {
				close(over)
				return
			}
			asked <- struct{}{}
		}
	}()
	for {
		select {
		case <-g.done:
			return
		case <-over:
			return
		case <-asked:
			_ = syscall.Kill(-g.leader, syscall.SIGTERM)
		}
	}
}

// sweepUntilGone sweeps until nothing is left, for as long as it takes: there may be nobody
// else who does.
func (g *group) sweepUntilGone() (left int) {
	for {
		n, err := g.sweepGroup()
		left += n
		if err == nil {
			return left
		}
		time.Sleep(time.Second) // what the kernel doesn't let go of now may take long
	}
}
