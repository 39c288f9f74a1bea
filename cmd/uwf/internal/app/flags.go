package app

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// CompleteFlag completes the values of a flag that has only these.
func CompleteFlag(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // there is no such flag: a mistake of who calls
	}
}

// RefuseNegative lets flags with a number refuse what is below 0, or no number.
func RefuseNegative(cmd *cobra.Command, flags ...string) {
	boundFlags(cmd, flags, errors.New("give a number from 0"))
}

// RefuseZero lets flags with a number refuse 0 too, which stands for a flag that was not
// given: who types it wants none at all, and would get no limit.
func RefuseZero(cmd *cobra.Command, flags ...string) {
	boundFlags(cmd, flags, errors.New("give a number above 0, or leave the flag out"), "0", "0s")
}

func boundFlags(cmd *cobra.Command, flags []string, refused error, values ...string) {
	for _, name := range flags {
		flag := cmd.Flags().Lookup(name)
		flag.Value = bounded{flag.Value, refused, append(values, "NaN", "+Inf")}
	}
}

type bounded struct {
	pflag.Value
	refused error
	values  []string // that are refused, besides all that are negative
}

// Set implements pflag.Value.
func (v bounded) Set(s string) error {
	if err := v.Value.Set(s); err != nil {
		return err
	}
	if now := v.String(); now[0] == '-' || slices.Contains(v.values, now) {
		return v.refused
	}
	return nil
}
