package clitest

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/cli"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/lease"
)

// What these variables do is in the uwf of the tests only: faults that come from
// outside, such as kills and other machines, without waiting for them.
const (
	EnvKill  = "UWF_TEST_KILL"  // POINT or POINT:N: SIGKILL itself the N-th time it gets there
	EnvHost  = "UWF_TEST_HOST"  // NAME: be on another machine, as far as claims can tell
	EnvRenew = "UWF_TEST_RENEW" // FILE: look after claims while, and only while, it is there
	EnvQuiet = "UWF_TEST_QUIET" // DURATION: how long a remote may say nothing
	EnvHasty = "UWF_TEST_HASTY" // anything: no outage is waited for
	EnvStops = "UWF_TEST_STOPS" // FILE: write the points that it gets to there
	EnvAhead = "UWF_TEST_AHEAD" // DURATION: what its clock is ahead
	EnvBared = "UWF_TEST_BARED" // anything: the environment can\'t be concealed from agents
	EnvCells = "UWF_TEST_CELLS" // anything: agents are confined by default, as in the uwf that is shipped
)

// FaultyMain is main with what the variables above say.
func FaultyMain() { os.Exit(cli.Main(faultyFactory)) }

func faultyFactory() (*app.Factory, error) {
	f, err := app.New()
	if err != nil {
		return nil, err
	}
	chooseSandbox(f)
	return f, meetFaults(f)
}

// chooseSandbox has agents run unconfined where nobody says anything: tests of many steps
// run them within their own process, or in folders that are closed to the agents' user.
func chooseSandbox(f *app.Factory) {
	if f.Getenv(EnvCells) == "" {
		f.DefaultSandbox = config.SandboxOff
	}
}

// meetFaults makes a Factory meet what its environment says.
func meetFaults(f *app.Factory) (err error) {
	if v := f.Getenv(EnvKill); v != "" {
		if f.Hook, err = killAt(v); err != nil {
			return err
		}
	}
	if file := f.Getenv(EnvStops); file != "" {
		f.Hook = noteIn(file)
	}
	if host := f.Getenv(EnvHost); host != "" {
		f.Machine = func() (string, string, error) { return host, "boot of " + host, nil }
	}
	if v := f.Getenv(EnvAhead); v != "" {
		ahead, err := time.ParseDuration(v)
		if err != nil {
			return err
		}
		f.Now = func() time.Time { return time.Now().Add(ahead) }
	}
	if f.Getenv(EnvBared) != "" {
		f.Exposed = errors.New("nothing can be written there")
	}
	if v := f.Getenv(EnvQuiet); v != "" {
		if f.Silence, err = time.ParseDuration(v); err != nil {
			return err
		}
	}
	f.AtOnce = f.Getenv(EnvHasty) != ""
	if file := f.Getenv(EnvRenew); file != "" {
		f.After = func(d time.Duration) (<-chan time.Time, func()) {
			if d != lease.WatchEvery {
				return deadline.SystemClock{}.After(d)
			}
			return whileThere(file)
		}
	}
	return nil
}

func killAt(v string) (func(string), error) {
	point, times, more := strings.Cut(v, ":")
	left := int64(1)
	if more {
		var err error
		if left, err = strconv.ParseInt(times, 10, 64); err != nil {
			return nil, err
		}
	}
	var n atomic.Int64
	return func(at string) {
		if at == point && n.Add(1) == left {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // can't fail on oneself
			select {}
		}
	}, nil
}

// noteIn adds each point to a file, in the order in which they are reached.
func noteIn(file string) func(string) {
	var mu sync.Mutex
	return func(at string) {
		mu.Lock()
		defer mu.Unlock()
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteString(at + "\n")
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			panic(err)
		}
	}
}

// whileThere is a timer that goes off once a file is there.
func whileThere(file string) (<-chan time.Time, func()) {
	at, stop := make(chan time.Time, 1), make(chan struct{})
	go func() {
		look := time.NewTicker(5 * time.Millisecond)
		defer look.Stop()
		for {
			select {
			case <-stop:
				return
			case now := <-look.C:
				if _, err := os.Stat(file); err == nil {
					at <- now
					return
				}
			}
		}
	}()
	return at, sync.OnceFunc(func() { close(stop) })
}
