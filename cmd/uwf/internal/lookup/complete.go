package lookup

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
)

// completeTime bounds how long a shell waits for what can be completed.
const completeTime = 2 * time.Second

// CompleteThread completes the ids of live threads, the latest first. Whatever
// fails completes nothing: a shell has no room for errors.
func CompleteThread(f *app.Factory) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !takesMore(cmd, args) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completeThreads(cmd.Context(), f, typed), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// takesMore reports whether a command takes another argument.
func takesMore(cmd *cobra.Command, args []string) bool {
	return cmd.Args != nil && cmd.Args(cmd, append(slices.Clone(args), "")) == nil
}

// CompleteStep completes the threads of steps; the number is the person's.
func CompleteStep(f *app.Factory) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 || strings.Contains(typed, ":") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		ids := completeThreads(cmd.Context(), f, typed)
		for i, id := range ids {
			id, what, _ := strings.Cut(id, "\t")
			ids[i] = id + ":\t" + what
		}
		return ids, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder | cobra.ShellCompDirectiveNoSpace
	}
}

func completeThreads(ctx context.Context, f *app.Factory, typed string) []string {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	store, err := f.Store(ctx)
	if err != nil {
		return nil
	}
	v, err := store.Load(ctx)
	if err != nil {
		return nil
	}
	var out []string
	for id, e := range v.Threads() {
		if s := string(id); strings.HasPrefix(s, strings.ToUpper(typed)) {
			out = append(out, s+"\t"+Status(v, id, e))
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	if strings.HasPrefix(Latest, typed) {
		out = append([]string{Latest + "\tthe thread that was started last"}, out...)
	}
	return out
}
