package app

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/internal/lists"
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
	if today := map[string]string{
		"add": "uwf workflow put", "list": "uwf workflow list", "show": "uwf workflow show", "history": "uwf workflow history",
		"rollback": "uwf workflow rollback", "threads": "uwf thread list", "kill": "uwf thread cancel", "fork": "uwf thread fork",
		"pause": "uwf thread pause", "resume": "uwf thread resume", "rm": "uwf thread rm", "remove": "uwf workflow remove",
	}[word]; today != "" && group.CommandPath() == "uwf" { // as they were in 2026-05
		return &UnknownError{What: "command of uwf", ID: word, Hint: "today: " + today}
	}
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
	near := lists.Map(SuggestNames(word, words), func(w string) string { return means[w] })
	slices.Sort(near)
	return slices.Compact(near)
}

// OwnCommands gives a root the commands that cobra would add by itself, so that a
// wrong word fails in them as it does everywhere.
func OwnCommands(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			Group(c)
		case "help":
			c.Use, c.Long, c.Example = "help [COMMAND...]", "Help about any command: the same as COMMAND --help.", "  "+root.Name()+" help"
			c.Run, c.RunE = nil, func(_ *cobra.Command, args []string) error {
				cmd, rest, err := root.Find(args)
				switch {
				case len(rest) > 0:
					return UnknownCommand(cmd, rest[0])
				case err != nil:
					return UnknownCommand(cmd, strings.Join(args, " "))
				}
				return cmd.Help()
			}
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

// CompleteFlag completes the values of a flag that has only these.
func CompleteFlag(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is no such flag: a mistake of who calls
	}
}

// AllowValues lets a flag refuse all values but these, and completes them.
func AllowValues(cmd *cobra.Command, flag string, values ...string) {
	CompleteFlag(cmd, flag, values...)
	last := len(values) - 1
	refused := fmt.Errorf("use %s or %s", strings.Join(values[:last], ", "), values[last])
	checkFlag(cmd, flag, refused, func(s string) bool { return slices.Contains(values, s) })
}

// RefuseNegative lets flags with a number refuse what is below 0, or no number.
func RefuseNegative(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		checkFlag(cmd, flag, fmt.Errorf("give a %s from 0", amountOf(cmd, flag)), isAmount)
	}
}

// RefuseZero lets flags with a number refuse 0 too, which stands for a flag that was not
// given: who types it wants none at all, and would get no limit.
func RefuseZero(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		checkFlag(cmd, flag, fmt.Errorf("give a %s above 0, or leave the flag out", amountOf(cmd, flag)), func(s string) bool { return isAmount(s) && s != "0" && s != "0s" })
	}
}

// amountOf is what a flag counts, in words.
func amountOf(cmd *cobra.Command, flag string) string {
	if cmd.Flags().Lookup(flag).Value.Type() == "duration" {
		return "time"
	}
	return "number"
}

// isAmount reports whether a number that was read is one that things can be counted with.
func isAmount(s string) bool { return s[0] != '-' && s != "NaN" && s != "+Inf" }

// checkFlag lets a flag refuse the values that do not fit.
func checkFlag(cmd *cobra.Command, name string, refused error, fits func(value string) bool) {
	flag := cmd.Flags().Lookup(name)
	if flag.DefValue == "0s" {
		flag.DefValue = "0" // the help leaves that out
	}
	flag.Value = checkedValue{flag.Value, refused, fits}
}

type checkedValue struct {
	pflag.Value
	refused error
	fits    func(value string) bool
}

// Set implements pflag.Value.
func (v checkedValue) Set(s string) error {
	if err := v.Value.Set(s); err != nil {
		return err
	}
	if !v.fits(v.String()) {
		return v.refused
	}
	return nil
}

// maxNear is how many suggestions an error makes.
const maxNear = 3

// minBeginning is the least length of a mistyped beginning that is compared with those of
// candidates; nearly all share what is shorter.
const minBeginning = 6

// SuggestNames lists what a mistyped id or name most likely means: what it is the beginning of, in
// small letters or large ones, or else what, or whose beginning, differs from it little.
func SuggestNames(id string, candidates []string) []string {
	candidates = slices.Compact(slices.Sorted(slices.Values(candidates)))
	var out, beginnings []string
	for _, c := range candidates {
		if len(id) >= 3 && len(id) < len(c) && strings.EqualFold(c[:len(id)], id) || strings.EqualFold(c, id) {
			out = append(out, c)
		}
		if len(id) >= minBeginning && len(id) < len(c) {
			beginnings = append(beginnings, c[:len(id)])
		}
	}
	if meant := cmp.Or(workflow.Suggest(id, candidates), workflow.Suggest(id, beginnings)); len(out) == 0 && meant != "" {
		out = slices.DeleteFunc(candidates, func(c string) bool { return !strings.HasPrefix(c, meant) })
	}
	return out[:min(len(out), maxNear)]
}

// LocalNow is the time in the zone that times are shown and read in.
func LocalNow(f *Factory) time.Time { return f.Now().In(cmp.Or(f.Zone, time.UTC)) }

// ParseTime reads a time: a date, a date with a time of day, how long ago (7d, 12h,
// 2w, 90m), or a thread, which stands for when it was started. What has no time
// zone is in that of now, see LocalNow.
func ParseTime(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if d, ok := parseAgo(text); ok {
		return now.Add(-d), nil
	}
	zone := now.Location()
	for _, layout := range []string{time.DateOnly, time.RFC3339, time.DateTime, time.DateTime + " MST", time.DateTime + " -0700", "2006-01-02 15:04", "2006-01-02 15:04 MST", "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		t, err := time.ParseInLocation(layout, text, zone)
		// To Go an abbreviation that this zone has not is one of a zone at no offset.
		if err == nil && (!strings.HasSuffix(layout, "MST") || t.Location() == zone || t.Location() == time.UTC) {
			return t, nil
		}
	}
	if id := gitcas.ThreadID(strings.ToUpper(text)); id.Valid() {
		return id.Time(), nil
	}
	return time.Time{}, Usagef("%s %.80q is no time: write 2026-06-04, 2026-06-04T12:00:00Z (%s where no zone is said), or how long ago: 90m, 12h, 7d, 2w", flag, text, now.Format("MST"))
}

// parseAgo reads how long something is ago.
func parseAgo(text string) (time.Duration, bool) {
	if text == "" {
		return 0, false
	}
	unit := map[byte]time.Duration{'m': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}[text[len(text)-1]]
	n, err := strconv.ParseUint(text[:len(text)-1], 10, 32)
	if unit == 0 || err != nil || n > uint64(math.MaxInt64/unit) {
		return 0, false
	}
	return time.Duration(n) * unit, true
}
