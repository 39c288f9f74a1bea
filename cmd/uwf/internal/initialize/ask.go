package initialize

import (
	"context"
	"fmt"
	"slices"

	"charm.land/huh/v2"

	"github.com/united-workforce/uwf/agents/cli"
	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
)

// openQuestions are those that no flag has answered.
func (o *Options) openQuestions(where *place) []setup.Question {
	names := slices.DeleteFunc(reachableProviders(), func(name string) bool { return name == githubModels && where.gitea })
	out := setup.ModelQuestions(names, func(name string) string {
		if name == githubModels {
			return " (a trial without a key: about 8,000 tokens in and 4,000 out a request)"
		}
		return ""
	}, &o.Provider, &o.BaseURL, &o.Model)
	if o.Secret == "" && where.other == "" {
		out = append(out, o.askSecret())
	}
	if where.gitea && len(o.Allow) == 0 {
		out = append(out, o.askAllow())
	}
	return out
}

func (o *Options) askAgent() setup.Question {
	options := []huh.Option[string]{huh.NewOption("uwf's own: nothing to install", "")}
	for _, c := range cli.All() {
		options = append(options, huh.NewOption(c.Title+": the job installs it", c.Name))
	}
	return setup.Question{Field: huh.NewSelect[string]().Title("Which agent works?").Options(options...).Value(&o.Agent)}
}

func (o *Options) askAllow() setup.Question {
	const say = "Names, separated by commas; a job on Gitea can't look it up. Empty: nobody else"
	return setup.Question{
		Field: huh.NewInput().Title("Who may start and steer agents, beside the owner of a personal repository?").Description(say).Value(&o.allowAnswer).Validate(func(s string) error {
			return o.checkNames(splitNames(s))
		}),
		Say: func() string { return say },
	}
}

func (o *Options) askSecret() setup.Question {
	usual := func() string {
		if p, _ := setup.ProviderNamed(o.Provider); p.APIKeyEnv != "" {
			return p.APIKeyEnv
		}
		return customKey
	}
	say := func() string { return "The name alone, never the key. Empty: " + usual() }
	return setup.Question{
		Field: huh.NewInput().Title("Which secret of the repository holds the key?").Description(say()).DescriptionFunc(say, &o.Provider).Value(&o.Secret).Validate(func(s string) error {
			if s == "" {
				return nil
			}
			return o.checkSecret(s)
		}),
		Skip: func() bool { return o.Provider == githubModels },
		Say:  say,
	}
}

// askOverwrite asks for one file.
func (o *Options) askOverwrite(ctx context.Context, x *file) error {
	yes := false
	err := o.Ask(ctx, []setup.Question{{Field: huh.NewConfirm().Title(fmt.Sprintf("Overwrite %s?", x.Path)).Affirmative("Yes").Negative("No, leave it").Value(&yes)}})
	if err != nil {
		return err
	}
	x.State = kept
	if yes {
		x.State = overwritten
	}
	return nil
}
