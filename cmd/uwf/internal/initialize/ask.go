package initialize

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"charm.land/huh/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
)

// openQuestions are those that no flag has answered.
func (o *Options) openQuestions(where *place) []setup.Question {
	var out []setup.Question
	if o.Provider == "" {
		out = append(out, o.askProvider(where))
	}
	if o.BaseURL == "" {
		out = append(out, setup.Question{
			Field: huh.NewInput().Title("What is its address?").Placeholder("https://api.example.com/v1").Value(&o.BaseURL).Validate(setup.CheckAddress),
			Skip: func() bool {
				p, _ := setup.ProviderNamed(o.Provider)
				return p.BaseURL != ""
			},
		})
	}
	if o.Model == "" {
		out = append(out, o.askModel())
	}
	if o.Secret == "" {
		out = append(out, o.askSecret())
	}
	if where.gitea && len(o.Allow) == 0 {
		out = append(out, o.askAllow())
	}
	return out
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

func (o *Options) askProvider(where *place) setup.Question {
	var options []huh.Option[string]
	for _, name := range reachableProviders() {
		if name == githubModels && where.gitea {
			continue
		}
		p, _ := setup.ProviderNamed(name)
		label := p.Label
		if name == githubModels {
			label += " (a trial without a key: about 8,000 tokens in and 4,000 out a request)"
		}
		options = append(options, huh.NewOption(label, name))
	}
	o.Provider = options[0].Value
	return setup.Question{Field: huh.NewSelect[string]().Title("Which provider runs the models?").Options(options...).Value(&o.Provider)}
}

func (o *Options) askModel() setup.Question {
	say := func() string {
		if p, _ := setup.ProviderNamed(o.Provider); p.Model.Name != "" {
			return "Empty: " + p.Model.Name
		}
		return ""
	}
	return setup.Question{
		Field: huh.NewInput().Title("Which model, as the provider calls it?").DescriptionFunc(say, &o.Provider).Value(&o.Model).Validate(func(s string) error {
			if p, _ := setup.ProviderNamed(o.Provider); strings.TrimSpace(s) == "" && p.Model.Name == "" {
				return errors.New("write the model's name")
			}
			return nil
		}),
		Say: say,
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
		Field: huh.NewInput().Title("Which secret of the repository holds the key?").DescriptionFunc(say, &o.Provider).Value(&o.Secret).Validate(func(s string) error {
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
