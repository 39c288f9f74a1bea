package app

import (
	"fmt"
	"os"
)

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
