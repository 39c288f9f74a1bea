// Package app is what the commands of uwf share: the process's streams,
// environment and clock, where things are (repository, storage root, store), who
// this run is, and which exit code an error stands for. Everything is made when
// it is first asked for, so `uwf --help` opens nothing. It never prints a result
// and knows no command.
package app

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/united-workforce/uwf/agents"
	"github.com/united-workforce/uwf/cmd/internal/output"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/engine/debuglog"
	"github.com/united-workforce/uwf/engine/lease"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/gitcas/wire"
	"github.com/united-workforce/uwf/internal/outage"
)

// IO are the process's streams.
type IO struct {
	In       io.Reader
	Out, Err io.Writer
	InTTY    bool
	OutTTY   bool
	ErrTTY   bool
	// Width is how many columns the terminal of Err has; nil: as many as every terminal has.
	Width func() int
}

// Columns are those of the terminal that remarks are written to.
func (s IO) Columns() int {
	if s.Width != nil {
		if n := s.Width(); n > 0 {
			return n
		}
	}
	return 80
}

// Factory gives commands what they depend on. Commands are tested with one whose
// fields are set to fakes.
type Factory struct {
	IO      IO
	Environ []string // the environment, KEY=value
	Dir     string   // the working directory, absolute
	Now     func() time.Time
	Zone    *time.Location // that times are shown and read in, JSON apart; nil: UTC
	Rand    io.Reader      // random bytes for ids
	// After delivers once d has passed, and returns a stop function.
	After func(d time.Duration) (<-chan time.Time, func())
	// Machine names this machine and its boot; nil: as the system says.
	Machine func() (host, boot string, err error)
	// Git runs git in a folder and returns what it prints. With an empty folder it runs in
	// no repository: only the user's and the system's settings count.
	Git func(ctx context.Context, c GitCall) ([]byte, error)

	// Release is the version that this binary was released as; empty: it was built
	// otherwise. Commit is the one that it was built from; empty: Go may know.
	Release, Commit string
	// DialWire opens the remote at a URL; nil: wire.Dial.
	DialWire func(url string, o wire.DialOptions) (wire.Remote, error)
	// Inside runs agents of this binary within this process where it can; nil: each
	// is a process of its own. See agents.Options.
	Inside func(ctx context.Context, p agents.Program) (code int, ok bool)
	// Exposed says why agents could read this process's environment; nil: they
	// can't. Then nothing in it may be secret.
	Exposed error
	// ExpectStore is the id of the store that is meant; empty: any.
	ExpectStore string
	// ReadSettings reads the files that settings come from; nil: as they are.
	ReadSettings func(path string) ([]byte, error)
	// Choice are the models and agents that the person chose for this run.
	Choice config.Choice
	// Trust is what the person said of what the repository wants of this machine: digests, as
	// uwf trust show prints them, or TrustNone.
	Trust []string
	// Silence is how long a remote may say nothing before it counts as
	// unreachable; 0: the transport's default.
	Silence time.Duration
	// AtOnce: no outage is waited for. What looks at how things are tells it at once.
	AtOnce bool
	// Until is when no outage is waited for any more; zero: see outage.Policy. Waiting
	// hears of each wait; nil: it is told on stderr.
	Until   time.Time
	Waiting func(outage.Wait)
	// SelfCommand runs this binary again; empty: the process's own executable.
	SelfCommand []string
	// DefaultSandbox is how agents are confined where nobody says anything; empty: as this
	// system can.
	DefaultSandbox config.Sandbox
	// Stopping is closed when the command is to end; nil: it is not known.
	Stopping <-chan struct{}
	// Job is set where this process is a CI job of `uwf action`.
	Job *Job
	// Hook is called after each durable point of a step, by name. Fault
	// injection only; nil in the binary that is shipped.
	Hook func(point string)

	// Format is the value of --format.
	Format string
	// Query is that of --jq, once it has been read; nil: none.
	Query *output.Query
	// Printed is told each result before it is printed; nil: nobody. For tests.
	Printed func(v any)

	repo     once[Repo]
	config   once[*config.Config]
	location once[Location]
	settings once[gitSettings]
	settled  once[bool]
	// known are credentials, by the address of a remote, that were looked up before they are
	// needed. Each is given out once: who asks again was refused with it.
	known    sync.Map
	redactor once[*redact.Redactor]
	who      once[lease.Identity]
	gits     sync.Map // programs git that are new enough, by their paths
	renewals int      // further identities that were given out
	apart    []string // folders in which agents are to work
	debug    once[*debuglog.Logger]
	logFiles *debuglog.Files
}

// once is what a process finds out when it is first asked for.
type once[T any] struct {
	sync.Once
	value T
	err   error
}

// findOnce gives what find found the first time.
func (o *once[T]) findOnce(find func() (T, error)) (T, error) {
	o.Do(func() { o.value, o.err = find() })
	return o.value, o.err
}

// New makes the Factory of this process.
func New() (*Factory, error) {
	dir, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	f := NewAt(dir, os.Environ(), IO{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTTY: isTerminal(os.Stdin), OutTTY: isTerminal(os.Stdout), ErrTTY: isTerminal(os.Stderr),
		Width: func() int {
			n, _, _ := term.GetSize(int(os.Stderr.Fd())) // 0: it does not tell
			return n
		},
	})
	f.Zone = time.Local // as TZ or the system says
	return f, nil
}

// NewAt makes a Factory that works in a folder, with an environment and streams of
// its own. The zone is the one that TZ names there, else UTC.
func NewAt(dir string, environ []string, streams IO) *Factory {
	f := &Factory{IO: streams, Environ: environ, Dir: dir, Now: time.Now, After: deadline.SystemClock{}.After, Rand: rand.Reader}
	f.Zone, _ = time.LoadLocation(strings.TrimPrefix(f.Getenv("TZ"), ":")) // nil: there is none of that name
	f.Git = f.runGit
	return f
}

func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Getenv is the last value of a variable in the Factory's environment.
func (f *Factory) Getenv(name string) string {
	for i := len(f.Environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(f.Environ[i], name+"="); ok {
			return v
		}
	}
	return ""
}

// ChooseOutput reads the values of --format and --jq, before anything is done.
func (f *Factory) ChooseOutput(query string) error {
	format, err := output.ParseFormat(f.Format)
	if err != nil {
		return &UsageError{Err: err}
	}
	if query == "" {
		return nil
	}
	if format != output.Auto && format != output.JSON {
		return Usagef("--jq works on JSON: leave --format %s out", format)
	}
	if f.Query, err = output.ParseQuery(query); err != nil {
		return &UsageError{Err: err}
	}
	return nil
}

// Printer prints results to stdout in the format that was asked for.
func (f *Factory) Printer() output.Printer {
	return output.Printer{
		Out: f.IO.Out, Format: output.Format(f.Format), TTY: f.IO.OutTTY, Color: f.IO.OutTTY && useColor(f), Zone: f.Zone,
		Query: f.Query, Seen: f.Printed,
	}
}

// Live says whether what goes on can be shown on the terminal in place: lines that are written
// anew.
func Live(f *Factory) bool { return f.IO.ErrTTY && useColor(f) }

// Notes prints remarks for people to stderr, never results.
func (f *Factory) Notes() *output.Writer {
	return output.Printer{Out: f.IO.Err, Color: f.IO.ErrTTY && useColor(f), Zone: f.Zone}.Text()
}

func useColor(f *Factory) bool {
	return f.Getenv("NO_COLOR") == "" && f.Getenv("TERM") != "dumb"
}

// Self is the command line that runs this binary again: agents of its own and
// the demo's jobs are child processes of it.
func (f *Factory) Self() ([]string, error) {
	if len(f.SelfCommand) > 0 {
		return f.SelfCommand, nil
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program's own file: %w", err)
	}
	return []string{exe}, nil
}

// Outages says how long servers that are away are waited for, and tells people of it.
func (f *Factory) Outages() outage.Policy {
	p := outage.Policy{Until: f.Until, Tell: f.Waiting, Now: f.Now}
	if f.AtOnce {
		p.Until = time.Unix(1, 0)
	}
	if p.Tell == nil {
		p.Tell = func(w outage.Wait) { f.Notes().Println("waiting:", w) }
	}
	if after := f.After; after != nil {
		p.Sleep = func(ctx context.Context, d time.Duration) error {
			over, stop := after(d)
			defer stop()
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-over:
				return nil
			}
		}
	}
	return p
}

// Job is what `uwf action` knows better than the working directory and the files in
// it: the checkout of a CI job may be a stranger's.
type Job struct {
	// Remote is the URL of the store's remote, in place of state.remote.
	Remote string
	// Dialed is that remote, where it was dialed already.
	Dialed wire.Remote
	// Branch is the state branch; empty: as configured.
	Branch string
	// Root is a folder with the default branch's definitions and settings. It stands
	// for the repository, and its settings are trusted.
	Root string
	// Config is the path of the settings file in Root.
	Config string
	// Policy is the text of the organisation's policy, which the job was given, and PolicyName
	// what it is called; nil: there is none but this machine's.
	Policy     []byte
	PolicyName string
	// Run names this job over all its re-runs, in place of GITHUB_RUN_ID. It begins with
	// CIRun, the CI run that the job belongs to.
	Run, CIRun string
	// AgentToken is the job's own token, where an agent may hold it: the job does nothing but
	// run one, and the token writes nothing. Empty: it may not.
	AgentToken string
	// Wrap is put around the store's remote; nil: nothing is.
	Wrap func(wire.Remote) wire.Remote
	// Adjust changes the settings that were read; nil: they stay.
	Adjust func(*config.Config)
}
