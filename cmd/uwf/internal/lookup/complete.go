package lookup

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/gitcas"
)

// completeTime bounds how long a shell waits for what can be completed.
const completeTime = 2 * time.Second

// CompleteThread completes the ids of live threads, the latest first. Whatever
// fails completes nothing: a shell has no room for errors.
func CompleteThread(f *app.Factory) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completeThreads(cmd, f, typed), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// TakeThread lets a command take one thread.
func TakeThread(f *app.Factory, cmd *cobra.Command) *cobra.Command {
	cmd.Args, cmd.ValidArgsFunction = cobra.ExactArgs(1), CompleteThread(f)
	return cmd
}

// CompleteStep completes the threads of steps; the number is the person's.
func CompleteStep(f *app.Factory) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 || strings.Contains(typed, ":") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ids := completeThreads(cmd, f, typed)
		for i, id := range ids {
			id, what, _ := strings.Cut(id, "\t")
			ids[i] = id + ":\t" + what
		}
		return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder | cobra.ShellCompDirectiveNoSpace
	}
}

// Complete is what a shell may complete of the store, as far as it can be read in time.
func Complete(cmd *cobra.Command, f *app.Factory, list func(*gitcas.View) []string) []string {
	ctx, cancel := context.WithTimeout(cmp.Or(cmd.Context(), context.Background()), completeTime)
	defer cancel()
	_, v, err := Load(ctx, f.Store)
	if err != nil {
		return nil
	}
	return list(v)
}

func completeThreads(cmd *cobra.Command, f *app.Factory, typed string) []string {
	return Complete(cmd, f, func(v *gitcas.View) []string {
		var out []string
		for id, e := range v.Threads() {
			if s := string(id); strings.HasPrefix(s, strings.ToUpper(typed)) {
				out = append(out, s+"\t"+StatusOf(v, id, e))
			}
		}
		slices.Sort(out)
		slices.Reverse(out)
		if strings.HasPrefix(Latest, typed) {
			out = append([]string{Latest + "\tthe thread that was started last"}, out...)
		}
		return out
	})
}
