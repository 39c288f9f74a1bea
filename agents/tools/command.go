package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/agents/internal/headtail"
	"github.com/united-workforce/uwf/agents/internal/proc"
)

const (
	commandName    = "run_command"
	defaultTimeout = 2 * time.Minute
	maxTimeout     = 10 * time.Minute
)

func commandTool() tool {
	return newTool(commandName, "Run a shell command (sh -c) in the workspace and get its output and exit code. There is no input, and no network to count on. Whatever it starts in the background ends with it. Long output is cut in its middle.",
		`{"type":"object","properties":{"command":{"type":"string"},"cwd":{"type":"string","description":"folder in the workspace; default: its top"},"timeout_seconds":{"type":"integer","minimum":1,"maximum":600,"description":"default 120"}},"required":["command"],"additionalProperties":false}`,
		(*Set).runCommand)
}

type commandIn struct {
	Command string `json:"command"`
	Cwd     string `json:"cwd"`
	Timeout int    `json:"timeout_seconds"`
}

func (s *Set) runCommand(ctx context.Context, in commandIn) (string, error) {
	if !s.o.AllowShell {
		return "", errors.New("it is not allowed here; work with the file tools")
	}
	if strings.TrimSpace(in.Command) == "" {
		return "", errors.New("the command is empty")
	}
	dir, err := s.resolvePath(cmp.Or(in.Cwd, "."))
	if err != nil {
		return "", err
	}
	timeout := defaultTimeout
	if in.Timeout > 0 {
		timeout = min(time.Duration(in.Timeout)*time.Second, maxTimeout)
	}
	out := &headtail.Buffer{Half: (s.o.MaxResult - 300) / 2}
	res, err := s.runner.Run(ctx, proc.Spec{
		Argv: []string{"/bin/sh", "-c", in.Command}, Dir: filepath.Join(s.dir, dir), Env: s.o.Environ,
		Stdout: out, Merge: true, Timeout: timeout,
	})
	if err != nil {
		return "", err
	}
	text := out.String()
	if s.o.Explain != nil {
		if why := s.o.Explain(text); why != "" {
			text += why + "\n"
		}
	}
	return text + describeEnd(res, timeout), nil
}

// describeEnd is the line that says how a command ended.
func describeEnd(res proc.Result, timeout time.Duration) string {
	var line string
	switch {
	case errors.Is(res.Stopped, proc.ErrTimeout):
		line = fmt.Sprintf("killed after %s: raise timeout_seconds, or run less", timeout)
	case res.Stopped != nil:
		line = "stopped: " + res.Stopped.Error()
	case res.Signal != 0:
		line = fmt.Sprintf("ended by signal %d (%s)", int(res.Signal), res.Signal)
	default:
		line = fmt.Sprintf("exit code %d", res.Code)
	}
	if res.Left > 0 && res.Stopped == nil {
		line += "; processes left in the background were ended"
	}
	return "[" + line + "]"
}
