package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"charm.land/huh/v2"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/cmd/internal/output"
	engine "github.com/united-workforce/uwf/engine/config"
)

// ErrStopped: the person did not want to go on.
var ErrStopped = errors.New("stopped: nothing was written")

// Question is one field of a form.
type Question struct {
	Field huh.Field
	Skip  func() bool   // whether what was answered so far makes it needless; nil: never
	Say   func() string // what to know before answering; nil: nothing
}

// form holds the answers while they are given.
type form struct {
	o   *Options
	a   *Answers
	way string // how the key is given
	yes bool
}

// The ways to give a key.
const (
	keyNamed = "named"
	keyTyped = "typed"
	keyNone  = "none"
)

// openQuestions are those that no flag has answered.
func (f *form) openQuestions() []Question {
	all := slices.Concat(ModelQuestions(ProviderNames(), nil, &f.a.Provider, &f.a.BaseURL, &f.a.Model), f.keyQuestion(),
		[]Question{f.priceQuestion(), f.agentQuestion(), f.scopeQuestion(), f.confirmQuestion()})
	return slices.DeleteFunc(all, func(q Question) bool { return q.Field == nil })
}

// ModelQuestions ask for the provider, of those that are named, for its address where that is
// not known, and for the model, as far as nothing is said yet. Label adds to what a provider
// is shown as; nil: nothing.
func ModelQuestions(names []string, label func(name string) string, provider, address, model *string) []Question {
	var out []Question
	preset := func() engine.Preset {
		p, _ := ProviderNamed(*provider)
		return p
	}
	if *provider == "" {
		var options []huh.Option[string]
		for _, name := range names {
			p, _ := ProviderNamed(name)
			if label != nil {
				p.Label += label(name)
			}
			options = append(options, huh.NewOption(p.Label, name))
		}
		*provider = names[0]
		out = append(out, Question{Field: huh.NewSelect[string]().Title("Which provider runs the models?").Options(options...).Value(provider)})
	}
	if *address == "" {
		out = append(out, Question{
			Field: huh.NewInput().Title("What is its address?").Placeholder("https://api.example.com/v1").Value(address).Validate(CheckAddress),
			Skip:  func() bool { return preset().BaseURL != "" },
		})
	}
	if *model == "" {
		say := func() string {
			p := preset()
			if p.Model.Name == "" {
				return ""
			}
			return strings.Join(wrapText(p.Note, 76), "\n") + "\nEmpty: " + p.Model.Name
		}
		out = append(out, Question{Say: say, Field: huh.NewInput().Title("Which model, as the provider calls it?").Description(say()).DescriptionFunc(say, provider).Value(model).Validate(func(s string) error {
			if strings.TrimSpace(s) == "" && preset().Model.Name == "" {
				return errors.New("write the model's name")
			}
			return nil
		})})
	}
	return out
}

// CheckAddress says what is wrong with a provider's address.
func CheckAddress(s string) error {
	u, err := url.Parse(strings.TrimSpace(s))
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil {
		return errors.New("write an address such as https://api.example.com/v1")
	}
	return nil
}

func (f *form) chosenPreset() engine.Preset {
	p, _ := ProviderNamed(f.a.Provider)
	return p
}

func (f *form) keyQuestion() []Question {
	noKey := func() bool { return f.chosenPreset().APIKeyEnv == "" && f.a.Provider != custom }
	if f.a.APIKeyEnv != "" && f.o.KeyFrom == "" {
		return nil
	}
	var out []Question
	f.way = keyTyped
	if f.o.KeyFrom == "" {
		f.way = keyNamed
		out = append(out, Question{
			Field: huh.NewSelect[string]().Title("Where is the key?").Value(&f.way).Options(
				huh.NewOption("In a variable of the environment, or of ~/.uwf/.env", keyNamed),
				huh.NewOption("I type it now; it is stored for me alone", keyTyped),
				huh.NewOption("There is none", keyNone),
			).Validate(func(way string) error {
				if way == keyNone && f.a.Provider != custom {
					return errors.New("this provider needs a key")
				}
				return nil
			}),
			Skip: noKey,
		}, Question{
			Field: huh.NewInput().Title("Which variable?").Description(f.describeVariable()).DescriptionFunc(f.describeVariable, &f.a.Provider).Value(&f.a.APIKeyEnv).Validate(f.checkVariable),
			Skip:  func() bool { return noKey() || f.way != keyNamed },
			Say:   f.describeVariable,
		})
	}
	return append(out, Question{
		Field: huh.NewInput().Title("The key:").EchoMode(huh.EchoModePassword).Value(&f.a.Key).Validate(func(s string) error { return checkKey(strings.TrimSpace(s)) }),
		Skip:  func() bool { return noKey() || f.way != keyTyped },
	})
}

// describeVariable says what an empty answer means.
func (f *form) describeVariable() string {
	name := f.chosenPreset().APIKeyEnv
	if name == "" {
		return ""
	}
	if value, where, err := lookupVariable(f.o.Factory, name); err == nil && value != "" {
		return "Empty: " + name + ", which is set in " + where
	}
	return "Empty: " + name + ", which is not set yet"
}

func (f *form) checkVariable(name string) error {
	if name == "" && f.chosenPreset().APIKeyEnv != "" {
		return nil
	}
	return checkEnvName(name)
}

// priceQuestion asks what a model costs of which uwf doesn't know it: a limit on cost can't be
// kept without.
func (f *form) priceQuestion() Question {
	if f.a.Price != "" {
		return Question{}
	}
	known := func() bool {
		full := f.finalAnswers()
		return full.tellsCost() || f.o.knowsPrice(full)
	}
	const what = "US dollars for a million tokens in and out, such as 2,10; 0 where it costs nothing; empty: unknown, and no limit on cost can be kept"
	return Question{Skip: known, Say: func() string { return what }, Field: huh.NewInput().Title("What does the model cost?").Description(what).Value(&f.a.Price).Validate(func(s string) error {
		if strings.TrimSpace(s) == "" {
			return nil
		}
		_, err := parsePrice(s)
		return err
	})}
}

// knowsPrice says whether the settings have a price for the model at its address.
func (o *Options) knowsPrice(a Answers) bool {
	c, err := engine.Load(o.Factory.ConfigSources())
	if err != nil {
		return false
	}
	m := c.Models[a.Provider]
	return m.Name == a.Model && m.Price.Known() && strings.TrimRight(c.Providers[m.Provider].BaseURL, "/") == a.BaseURL
}

func (f *form) agentQuestion() Question {
	known, _ := isAgentName(f.o.Factory, engine.DefaultAgent)
	known = slices.DeleteFunc(slices.Clone(known), func(s string) bool { return s == "mock" })
	if f.a.Agent != "" || len(known) < 2 {
		return Question{}
	}
	f.a.Agent = engine.DefaultAgent
	return Question{Field: huh.NewSelect[string]().Title("Which agent works where nothing else is said?").Options(huh.NewOptions(known...)...).Value(&f.a.Agent)}
}

func (f *form) scopeQuestion() Question {
	if f.a.Repo || f.o.User || f.o.Factory.RepoRoot() == "" {
		return Question{}
	}
	return Question{Field: huh.NewSelect[bool]().Title("For whom are these settings?").Value(&f.a.Repo).
		Options(huh.NewOption("For me, in every repository", false), huh.NewOption("For everybody who works in this repository", true))}
}

func (f *form) confirmQuestion() Question {
	title := "Try it with one tiny request, and write it down?"
	if f.o.NoTest {
		title = "Write it down?"
	}
	say := func() string {
		full := f.finalAnswers()
		return fmt.Sprintf("%s, %s, %s", output.Line(full.Provider, 40), output.Line(full.Model, 80), output.Line(full.BaseURL, 200))
	}
	f.yes = true
	return Question{Field: huh.NewConfirm().Title(title).Description(say()).DescriptionFunc(say, f.a).Affirmative("Yes").Negative("No").Value(&f.yes), Say: say}
}

// finalAnswers are the answers, with what they leave to the preset.
func (f *form) finalAnswers() Answers {
	a := *f.a
	a.Model, a.Key, a.BaseURL, a.Price = strings.TrimSpace(a.Model), strings.TrimSpace(a.Key), strings.TrimSpace(a.BaseURL), strings.TrimSpace(a.Price)
	// A person who goes back may have answered what is not asked any more.
	if f.way != keyTyped {
		a.Key = ""
	}
	if f.way != keyNamed && f.o.Answers.APIKeyEnv == "" {
		a.APIKeyEnv = ""
	}
	if f.o.Answers.BaseURL == "" && f.chosenPreset().BaseURL != "" {
		a.BaseURL = ""
	}
	a.Complete()
	return a
}

// terminal asks on a terminal.
type terminal struct {
	in    io.Reader
	out   io.Writer
	plain bool // line by line, for screen readers and simple terminals
	ended bool // there is no more input
	keys  *keyboard
}

// Asker asks questions on the terminal that a process has; nil: there is none.
func Asker(f *app.Factory) func(context.Context, []Question) error {
	if !f.IO.InTTY || !f.IO.ErrTTY {
		return nil
	}
	t := &terminal{in: f.IO.In, out: f.IO.Err, plain: f.Getenv("ACCESSIBLE") != "" || f.Getenv("TERM") == "dumb" || f.Getenv("TERM") == ""}
	return t.ask
}

func (t *terminal) ask(ctx context.Context, questions []Question) error {
	if t.plain {
		return t.askByLines(ctx, questions)
	}
	return t.askOnScreen(ctx, questions)
}

// askAll asks for everything that no flag has said.
func (o *Options) askAll(ctx context.Context, a *Answers) error {
	f := &form{o: o, a: a}
	if err := o.Ask(ctx, f.openQuestions()); err != nil {
		return err
	}
	if !f.yes {
		return ErrStopped
	}
	*a = f.finalAnswers()
	return nil
}

// askOnScreen asks all questions on one screen.
func (t *terminal) askOnScreen(ctx context.Context, questions []Question) error {
	var groups []*huh.Group
	for _, q := range questions {
		g := huh.NewGroup(q.Field)
		if q.Skip != nil {
			g = g.WithHideFunc(q.Skip)
		}
		groups = append(groups, g)
	}
	form := huh.NewForm(groups...)
	in := t.in
	if d, ok := t.in.(device); ok {
		if t.keys == nil {
			t.keys = newKeyboard(d)
		}
		keys, done := t.keys.forForm()
		defer done()
		in = keys
	}
	form.WithProgramOptions(tea.WithFilter(goBack(form))).WithInput(in).WithOutput(t.out)
	err := form.RunWithContext(ctx)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, huh.ErrUserAborted):
		return ErrStopped
	case err != nil:
		return app.Usagef("ask on this terminal: %w; give the answers as flags (see: uwf setup --help)", err)
	}
	return nil
}

// goBack lets a person go back from a question whatever its answer is so far. The library
// checks that on the way back as well: it stays with the question where the answer is
// wrong, after it has taken the focus from it, so that no key does anything any more. Each
// question is a group of its own.
func goBack(form *huh.Form) func(tea.Model, tea.Msg) tea.Msg {
	return func(_ tea.Model, msg tea.Msg) tea.Msg {
		if key, ok := msg.(tea.KeyPressMsg); !ok || key.String() != "shift+tab" {
			return msg
		}
		_, forget := form.Update(tea.KeyPressMsg{}) // any key takes back that an answer was wrong
		return tea.BatchMsg{forget, form.PrevGroup()}
	}
}

// askByLines asks one question after the other, as lines of text.
func (t *terminal) askByLines(ctx context.Context, questions []Question) error {
	for _, q := range questions {
		if q.Skip != nil && q.Skip() {
			continue
		}
		if q.Say != nil {
			if _, err := fmt.Fprintln(t.out, q.Say()); err != nil {
				return err
			}
		}
		if err := t.askLine(ctx, q.Field); err != nil {
			return err
		}
	}
	return nil
}

// askLine asks one question. The library does not say that the input ended: then
// nothing was answered.
func (t *terminal) askLine(ctx context.Context, field huh.Field) error {
	field.Init()
	field.Focus()
	done := make(chan error, 1)
	go func() { done <- field.RunAccessible(t.out, t.inputReader()) }()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-done:
		if err == nil && t.ended {
			err = ErrStopped
		}
		return err
	}
}

// inputReader notices the end of the input. A terminal's stays one, for keys are read
// from it without being shown.
func (t *terminal) inputReader() io.Reader {
	r := endReader{t}
	if file, ok := t.in.(interface{ Fd() uintptr }); ok {
		return struct {
			endReader
			fd
		}{r, fd{file.Fd()}}
	}
	return r
}

type fd struct{ n uintptr }

// Fd is the terminal's number.
func (f fd) Fd() uintptr { return f.n }

type endReader struct{ t *terminal }

// Read gives at most one line: the library reads ahead and forgets the rest.
func (r endReader) Read(p []byte) (int, error) {
	for n := range p {
		if _, err := io.ReadFull(r.t.in, p[n:n+1]); err != nil {
			if n == 0 {
				r.t.ended = true
			}
			return n, err
		}
		if p[n] == '\n' {
			return n + 1, nil
		}
	}
	return len(p), nil
}
