package program

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
)

// explainMistake says what is wrong with a command line that no command has seen, and how
// it is written. The libraries' own words name their functions, not what to type.
func explainMistake(cmd *cobra.Command, err error) error {
	if args := cmd.Flags().Args(); cmd.HasSubCommands() && cmd.Use == cmd.Name() && len(args) > 0 {
		return app.UnknownCommand(cmd, args[0]) // whose flags nobody can know
	}
	return app.Usagef("%w\nsee: %s --help", rewordError(cmd, err), cmd.CommandPath())
}

func rewordError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(cmd, unknown)
	}
	if lone, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		what, _ := pflag.UnquoteUsage(lone.GetFlag())
		return fmt.Errorf("--%s needs a value; write: --%[1]s %s", lone.GetFlag().Name, what)
	}
	if value, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		written := errors.As(err, new(*strconv.NumError)) || value.GetFlag().Value.Type() == "duration" && strings.HasPrefix(value.Unwrap().Error(), "time: ")
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
	if lacksArguments(cmd, args) {
		return fmt.Errorf("an argument is missing; write: %s", line)
	}
	if len(args) == 1 {
		return fmt.Errorf("it takes no argument, and got %q; write: %s", args[0], line)
	}
	return fmt.Errorf("%d arguments are too many (a text with spaces stands in quotes); write: %s", len(args), line)
}

// unknownFlag names the flags that an unknown one may have meant.
func unknownFlag(cmd *cobra.Command, err *pflag.NotExistError) error {
	name := err.GetSpecifiedName()
	if group := err.GetSpecifiedShortnames(); group != "" {
		name = group // a long name behind one dash is read as a group of short ones
	}
	switch output.Format(name) {
	case output.JSON, output.YAML, output.Text:
		return fmt.Errorf("%w; did you mean --format %s?", err, name)
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	near := app.SuggestNames(name, names)
	if len(near) == 0 || len(name) < 2 {
		return err
	}
	return fmt.Errorf("%w; did you mean --%s?", err, strings.Join(near, ", --"))
}

// lacksArguments tells whether a command would take these arguments with some more.
func lacksArguments(cmd *cobra.Command, args []string) bool {
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
