package app

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// Group makes a command out of others: alone it shows its help, with a word that
// is none of its commands it fails and names the near ones. Cobra alone would show
// the help and succeed.
func Group(cmd *cobra.Command, sub ...*cobra.Command) *cobra.Command {
	cmd.AddCommand(sub...)
	cmd.Args = cobra.ArbitraryArgs // so that a wrong word comes here, not to cobra
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return cmd.Help()
		}
		return UnknownCommand(cmd, args[0])
	}
	return cmd
}

// UnknownCommand says that a group has no command of that name.
func UnknownCommand(group *cobra.Command, word string) error {
	return &UnknownError{What: "command of " + group.CommandPath(), ID: word, Near: nearCommands(group, word), See: group.CommandPath() + " --help"}
}

// nearCommands are the commands of a group that a wrong word may have meant: one
// of their names or other names mistyped, or its beginning.
func nearCommands(group *cobra.Command, word string) []string {
	means := map[string]string{}
	var words []string
	for _, c := range group.Commands() {
		if !c.IsAvailableCommand() {
			continue
		}
		for _, w := range slices.Concat([]string{c.Name()}, c.Aliases, c.SuggestFor) {
			means[w] = c.Name()
			words = append(words, w)
		}
	}
	near := NearWords(word, words)
	for i, w := range near {
		near[i] = means[w]
	}
	slices.Sort(near)
	return slices.Compact(near)
}

// OwnCommands gives a root the commands that cobra would add by itself, so that a
// wrong word fails in them as it does everywhere.
func OwnCommands(root *cobra.Command) {
	root.SetHelpCommand(&cobra.Command{
		Use:     "help [COMMAND...]",
		Short:   "Help about any command",
		Long:    "Help about any command: the same as COMMAND --help.",
		Example: "  " + root.Name() + " help",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			var out []string
			if at, rest, err := root.Find(args); err == nil && len(rest) == 0 {
				for _, c := range at.Commands() {
					out = append(out, c.Name()+"\t"+c.Short)
				}
			}
			return out, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				word := strings.Join(args, " ")
				if len(rest) > 0 {
					word = rest[0]
				}
				return UnknownCommand(cmd, word)
			}
			return cmd.Help()
		},
	})
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			Group(c)
		}
	}
}

// SecretArguments is the annotation of a command whose arguments may be secret:
// they are written down nowhere, whatever the level of the debug log.
const SecretArguments = "uwf:secret-arguments"

// Run makes what a command does of its options: set takes over the arguments,
// then the command's own function gets the options, or the one that a test put in
// its place.
func Run[O any](o *O, injected, own func(context.Context, *O) error, set func(args []string)) func(*cobra.Command, []string) error {
	if injected != nil {
		own = injected
	}
	return func(cmd *cobra.Command, args []string) error {
		set(args)
		return own(cmd.Context(), o)
	}
}
