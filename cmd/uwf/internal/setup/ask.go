package setup

import (
	"context"

	"charm.land/huh/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	engine "github.com/united-workforce/uwf/engine/config"
)

// ErrStopped: the person did not want to go on.
var ErrStopped = errStopped

// Question is one question of another command's form.
type Question struct {
	Field huh.Field
	Skip  func() bool   // whether what was answered so far makes it needless; nil: never
	Say   func() string // what to know before answering; nil: nothing
}

// Asker asks questions on the terminal as `uwf setup` does; nil: there is none.
func Asker(f *app.Factory) func(context.Context, []Question) error {
	if !f.IO.InTTY || !f.IO.ErrTTY {
		return nil
	}
	t := &terminal{in: f.IO.In, out: f.IO.Err, plain: f.Getenv("ACCESSIBLE") != "" || f.Getenv("TERM") == "dumb" || f.Getenv("TERM") == ""}
	return func(ctx context.Context, questions []Question) error {
		var own []question
		for _, q := range questions {
			own = append(own, question{field: q.Field, skip: q.Skip, say: q.Say})
		}
		if t.plain {
			return t.askByLines(ctx, own)
		}
		return t.askOnScreen(ctx, own)
	}
}

// NewProber makes a Prober that reaches providers as this process is told to.
func NewProber(f *app.Factory) Prober {
	return Prober{Client: NewClient(newTransport(f)), Proxy: f.Proxy, Clean: f.CleanMessage}
}

// ProviderNames are those that can be chosen.
func ProviderNames() []string { return presetNames() }

// ProviderNamed is what is known of a provider that can be chosen.
func ProviderNamed(name string) (engine.Preset, bool) { return findPreset(name) }

// Complete fills in what is known of the provider.
func (a *Answers) Complete() { a.completePreset() }

// CheckAddress says what is wrong with a provider's address.
func CheckAddress(s string) error { return checkAddress(s) }

// Lookup finds a variable in the environment, else in ~/.uwf/.env.
func Lookup(f *app.Factory, name string) (string, error) {
	value, _, err := lookupVariable(f, name)
	return value, err
}
