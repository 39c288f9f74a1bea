package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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
		checkFlag(cmd, flag, errors.New("give a number from 0"), isAmount)
	}
}

// RefuseZero lets flags with a number refuse 0 too, which stands for a flag that was not
// given: who types it wants none at all, and would get no limit.
func RefuseZero(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		checkFlag(cmd, flag, errors.New("give a number above 0, or leave the flag out"), func(s string) bool { return isAmount(s) && s != "0" && s != "0s" })
	}
}

// isAmount reports whether a number that was read is one that things can be counted with.
func isAmount(s string) bool { return s[0] != '-' && s != "NaN" && s != "+Inf" }

// checkFlag lets a flag refuse the values that do not fit.
func checkFlag(cmd *cobra.Command, name string, refused error, fits func(value string) bool) {
	flag := cmd.Flags().Lookup(name)
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
