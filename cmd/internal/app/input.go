package app

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/deadline"
	"github.com/united-workforce/uwf/internal/lists"
)

// Path is a file that a command was given, as an absolute path: relative ones are
// relative to the Factory's folder.
func (f *Factory) Path(name string) string { return resolvePath(f.Dir, name) }

// ShortenPath writes a file as people would: relative to where they are, or with ~.
func ShortenPath(f *Factory, file string) string {
	if rel, err := filepath.Rel(f.Dir, file); file != "" && err == nil && filepath.IsLocal(rel) {
		return rel
	}
	if home := f.Getenv("HOME"); home != "" {
		if rel, ok := strings.CutPrefix(file, filepath.Clean(home)+string(filepath.Separator)); ok {
			return "~/" + rel
		}
	}
	return file
}

// ReadInput reads a file, or stdin where name is "-" or empty, up to limit bytes.
// Anything but a regular file, a pipe or stdin is refused: a device never ends.
func (f *Factory) ReadInput(name string, limit int64) (b []byte, err error) {
	in, what := f.IO.In, "stdin"
	if name != "" && name != "-" {
		file, err := os.Open(f.Path(name))
		if err != nil {
			return nil, &UsageError{Err: err}
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		info, err := file.Stat()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		if t := info.Mode().Type(); t != 0 && t != fs.ModeNamedPipe {
			return nil, Usagef("%s is no file", filepath.Clean(name))
		}
		in, what = file, name
	} else if f.IO.InTTY {
		f.Notes().Printf("reading from the terminal; end with ctrl-D\n")
	}
	b, err = io.ReadAll(io.LimitReader(in, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	if int64(len(b)) > limit {
		return nil, Usagef("%s is larger than %d bytes", what, limit)
	}
	return b, nil
}

// maxConfig is the largest settings file, in bytes.
const maxConfig = 1 << 20

// Config is the settings of this repository and user, read once.
func (f *Factory) Config() (*config.Config, error) {
	return f.config.findOnce(func() (*config.Config, error) { return loadConfig(f) })
}

// ConfigSources are where this repository's and this user's settings come from.
func (f *Factory) ConfigSources() config.Sources {
	s := config.Sources{Env: f.Environ, Choice: f.Choice, DefaultSandbox: f.DefaultSandbox, ReadFile: func(path string) ([]byte, error) { return ReadRegular(path, maxConfig) }}
	if f.ReadSettings != nil {
		s.ReadFile = f.ReadSettings
	}
	if s.DefaultSandbox == "" && runtime.GOOS != "linux" {
		s.DefaultSandbox = config.SandboxOff // elsewhere nobody has tried yet that it holds
	}
	if root := f.RepoRoot(); root != "" {
		s.RepoFile = filepath.Join(root, ".uwf", "config.yaml")
	}
	if f.Job != nil {
		s.RepoFile, s.RepoTrusted = filepath.Join(f.Job.Root, filepath.FromSlash(f.Job.Config)), true
		s.Policy, s.PolicyName = f.Job.Policy, f.Job.PolicyName
	}
	if home, err := f.StorageRoot(); err == nil {
		// Without a home there are no settings in it; who needs the folder says so.
		s.HomeFile, s.EnvFile, s.PolicyFile = filepath.Join(home, "config.yaml"), filepath.Join(home, ".env"), filepath.Join(home, "policy.yaml")
	}
	if s.RepoFile == s.HomeFile {
		s.RepoFile = "" // the home folder is a repository itself
	}
	addConsent(f, &s)
	return s
}

func loadConfig(f *Factory) (*config.Config, error) {
	c, err := config.Load(f.ConfigSources())
	if errors.Is(err, config.ErrInvalid) {
		return nil, &UsageError{Err: err}
	}
	if err == nil && f.Job != nil && f.Job.Adjust != nil {
		f.Job.Adjust(c)
	}
	return c, err
}

// FileNames are the names in a folder; of one that can't be read, none.
func FileNames(in fs.FS, dir string) []string {
	entries, _ := fs.ReadDir(in, dir)
	return lists.Map(entries, fs.DirEntry.Name)
}

// ReadRegular reads a regular file of at most limit bytes. Anything else could
// block, or never end.
func ReadRegular(path string, limit int64) ([]byte, error) {
	return ReadRegularBy(os.Stat, os.Open, path, limit)
}

// ReadRegularBy is ReadRegular where files are found and opened in another way.
func ReadRegularBy(stat func(string) (os.FileInfo, error), open func(string) (*os.File, error), path string, limit int64) (b []byte, err error) {
	info, err := stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("read %s: not a regular file", path)
	}
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	b, err = io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("read %s: larger than %d bytes", path, limit)
	}
	return b, nil
}

// Confirm asks a person a question whose answer is yes or no, on the terminal. yes
// is the answer that a flag gave before. Where there is no terminal nobody can be
// asked: then the flag is needed.
func (f *Factory) Confirm(question string, yes bool) error {
	if yes {
		return nil
	}
	if !f.IO.CanAsk() {
		return Usagef("nobody is there to ask: %s Say so with --yes", question)
	}
	switch answer, err := f.Choose(question+" [y/N]", false); {
	case err != nil:
		return err
	case answer == Yes:
		return nil
	}
	return &UsageError{Err: ErrDeclined}
}

// CanAsk says whether a person is there to be asked: on a terminal.
func (s IO) CanAsk() bool { return s.InTTY && s.ErrTTY }

// The answers of Choose.
const (
	No     = "n"
	Yes    = "y"
	Always = "a"
)

// Choose asks the person on the terminal until they answer Yes, No or, if the question offers it,
// Always. Enter means No. Any other text, such as a command line that was pasted, is no answer.
func (f *Factory) Choose(question string, always bool) (string, error) {
	for {
		answer, err := f.Ask(question + " ")
		switch {
		case err != nil:
			return "", err
		case answer == "", answer == No, answer == "no":
			return No, nil
		case answer == Yes, answer == "yes":
			return Yes, nil
		case always && (answer == Always || answer == "always" || answer == "all"):
			return Always, nil
		}
		f.Notes().Println("Please answer with one of the letters, or Enter for no.")
	}
}

// Ask asks the person on the terminal, and returns the answer in small letters.
func (f *Factory) Ask(question string) (string, error) {
	answer, err := AskWords(f, question)
	return strings.ToLower(answer), err
}

// AskWords asks the person on the terminal, and returns a line as it was typed. It ends with the
// command: a person who presses ctrl-C waits for nothing.
func AskWords(f *Factory, question string) (string, error) {
	f.Notes().Printf("%s", question)
	type answer struct {
		line string
		err  error
	}
	got := make(chan answer, 1)
	go func() {
		line, err := readLineOf(f.IO.In)
		got <- answer{line, err}
	}()
	select {
	case a := <-got:
		return a.line, a.err
	case <-f.Stopping: // nil where nothing stops it
		f.Notes().Println()
		return "", fmt.Errorf("read the answer: %w", deadline.ErrStopped)
	}
}

// maxAnswer is the longest line that is read, in bytes: as much as a terminal takes.
const maxAnswer = 64 << 10

// readLineOf reads a line byte by byte: what comes after it is for the next question.
func readLineOf(in io.Reader) (string, error) {
	var line []byte
	for b := make([]byte, 1); len(line) < maxAnswer; {
		n, err := in.Read(b)
		if n == 1 && b[0] == '\n' {
			break
		}
		if line = append(line, b[:n]...); errors.Is(err, io.EOF) && len(line) > 0 {
			break
		}
		if err != nil {
			return "", fmt.Errorf("read the answer: %w", err)
		}
	}
	return strings.TrimSpace(string(line)), nil
}

// ErrDeclined is a person's no.
var ErrDeclined = errors.New("nothing was changed: the answer was no")
