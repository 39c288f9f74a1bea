package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
)

// mistaken says what is wrong with a command line that no command has seen, and how
// it is written. The libraries' own words name their functions, not what to type.
func mistaken(cmd *cobra.Command, err error) error {
	return app.Usagef("%w\nsee: %s --help", reworded(cmd, err), cmd.CommandPath())
}

func reworded(cmd *cobra.Command, err error) error {
	var value *pflag.InvalidValueError
	if errors.As(err, &value) {
		var number *strconv.NumError
		written := errors.As(err, &number) || value.GetFlag().Value.Type() == "duration" && strings.HasPrefix(value.Unwrap().Error(), "time: ")
		if shape := valueShape(value.GetFlag().Value.Type()); written && shape != "" {
			return fmt.Errorf("--%s can't be %q: write %s", value.GetFlag().Name, value.GetValue(), shape)
		}
		return fmt.Errorf("--%s can't be %q: %w", value.GetFlag().Name, value.GetValue(), value.Unwrap())
	}
	args := cmd.Flags().Args()
	if cmd.Args == nil || cmd.Args(cmd, args) == nil {
		return err
	}
	line := strings.TrimSuffix(cmd.UseLine(), " [flags]")
	if lacks(cmd, args) {
		return fmt.Errorf("an argument is missing; write: %s", line)
	}
	if len(args) == 1 {
		return fmt.Errorf("it takes no argument, and got %q; write: %s", args[0], line)
	}
	return fmt.Errorf("%d arguments are too many (a text with spaces stands in quotes); write: %s", len(args), line)
}

// lacks tells whether a command would take these arguments with some more.
func lacks(cmd *cobra.Command, args []string) bool {
	more := append([]string(nil), args...)
	for range 3 {
		more = append(more, "X")
		if cmd.Args(cmd, more) == nil {
			return true
		}
	}
	return false
}

// valueShape is how a flag of a type is written; empty where the type says it itself.
func valueShape(kind string) string {
	switch kind {
	case "int", "int64", "uint", "uint64":
		return "a whole number, such as 20"
	case "float64":
		return "a number, such as 2.5"
	case "duration":
		return "a time with its unit, such as 90s, 20m or 2h"
	case "bool":
		return "true or false, or the flag alone"
	}
	return ""
}
