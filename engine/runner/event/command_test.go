package event

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestCommand(t *testing.T) {
	for _, c := range []struct {
		body, verb string
		args       []string
		text       string
	}{
		{"/uwf status", "status", nil, ""},
		{"/UWF Status", "status", nil, ""},
		{"/uwf\tstatus \r\n", "status", nil, ""},
		{"/uwf\u00a0resume\u00a0yes", "resume", nil, "yes"},
		{"\u200b/uwf cancel", "cancel", nil, ""},
		{"  /uwf retry", "retry", nil, ""},
		{"/uwf retry --Take it is dead", "retry", []string{"--take"}, "it is dead"},
		{"/uwf retry --thread=01J --take", "retry", []string{"--thread=01J", "--take"}, ""},
		{"hello\n\n/uwf resume\n\nUse the second.\n\nThanks", "resume", nil, "Use the second.\n\nThanks"},
		{"/uwf resume don't use \"it\" --force", "resume", nil, "don't use \"it\" --force"},
		{"/uwf resume one\r\ntwo", "resume", nil, "one\ntwo"},
		{"/uwf resume --thread=01J --agent mine go on", "resume", []string{"--thread=01J", "--agent=mine"}, "go on"},
		{"/uwf cancel it leads nowhere", "cancel", nil, "it leads nowhere"},
		{"/uwf start", "start", nil, ""},
		{"/uwf start solve-issue\nand test it", "start", []string{"solve-issue"}, "and test it"},
		{`/uwf start "flow" --Agent=big --max-steps 5 it's`, "start", []string{"flow", "--agent=big", "--max-steps=5", "it's"}, ""},
		{"/uwf resume --cost-usd 5 --wall=90m go on", "resume", []string{"--cost-usd=5", "--wall=90m"}, "go on"},
		{"/uwf resume --Cost-USD 5 --tokens=900 go on", "resume", []string{"--cost-usd=5", "--tokens=900"}, "go on"},
		{"/uwf start “flow” „x“ '' --agent=“y”", "start", []string{"flow", "x", "--agent=y"}, ""},
		{`/uwf start "it's two" --agent="a b" 'c "d' --thread “e f” --max-steps "5"`, "start", []string{"it's two", "--agent=a b", `c "d`, "--thread=e f", "--max-steps=5"}, ""},
		{"/uwf fork 3", "fork", []string{"3"}, ""},
		{"/uwf help", "help", nil, ""},
		{"/uwf status\n/uwf cancel", "status", nil, "/uwf cancel"},
		{"para\n    /uwf status", "status", nil, ""}, // still the paragraph
		{"```\ncode\n```\n/uwf status", "status", nil, ""},
		{"``` not a fence ` \n/uwf status", "status", nil, ""},
		{"<!-- x -->\n/uwf status", "status", nil, ""},
		{"<!-- x\n\n-->\n/uwf status", "status", nil, ""},
	} {
		got, err := ParseCommand(c.body)
		if err != nil || got == nil {
			t.Errorf("%q: %v %v", c.body, got, err)
			continue
		}
		if got.Verb != c.verb || !slices.Equal(got.Args, c.args) || got.Text != c.text {
			t.Errorf("%q: %+v", c.body, got)
		}
	}
}

func TestNoCommand(t *testing.T) {
	for _, body := range []string{
		"", "hello", "see /uwf start", "/uwf-foo start", "/uwfoo", "/uwf.", "//uwf start", "\\/uwf start", "- /uwf start", "# /uwf start",
		"> /uwf start", "    /uwf start", "\t/uwf start", "a\n\n    /uwf start", "`/uwf start`",
		"```\n/uwf start\n```", "~~~ text\n/uwf start\n~~~", "````\n```\n/uwf start\n````", "```\n/uwf start", "  ```sh\n/uwf start\n  ```",
		"<!-- /uwf start -->", "<!--\n/uwf start\n-->", "text <!--\n/uwf start", "<!-- a --> <!--\n/uwf start\n-->",
		"<!--\na --> b <!-- c\n/uwf start\n-->", "<!--\na --><!-- b --><!--\n/uwf start",
	} {
		if got, err := ParseCommand(body); got != nil || err != nil {
			t.Errorf("%q: %+v %v", body, got, err)
		}
	}
}

func TestCommandErrors(t *testing.T) {
	for body, want := range map[string]string{
		"/uwf":                              "alone says nothing",
		"/uwf resum yes":                    "Did you mean `/uwf resume`?",
		"/uwf START!":                       "`/uwf start!` is not known",
		"/uwf de`plo\u202ey now":            "`/uwf de'plo\uFFFDy` is not known",
		"/uwf start --agnt=x":               "Did you mean `--agent`?",
		"/uwf start --agent":                "needs a value",
		"/uwf start --agent --x=y":          "needs a value",
		"/uwf fork 'it":                     "quote of `'it` is never closed",
		`/uwf start "fix it`:                "is never closed",
		"/uwf start --agent=“a b":           "is never closed",
		"/uwf resume --force it":            "goes on the line below",
		"/uwf resume --take it":             "`--take` is not known",
		"/uwf retry --take=yes":             "`--take` is not known",
		"/uwf start --model=x":              "`--model` is not known",
		"/uwf " + strings.Repeat("x", 5000): "is not known",
	} {
		c, err := ParseCommand(body)
		var bad *CommandError
		if c != nil || !errors.As(err, &bad) || !strings.Contains(bad.Msg, want) || !strings.Contains(bad.Msg, "- `/uwf retry [--take]`") {
			t.Errorf("%q: %+v %v", body, c, err)
		}
		if strings.Count(err.Error(), "`")%2 != 0 || len(err.Error()) > 2000 {
			t.Errorf("%q: %s", body, err)
		}
	}
}

func TestCommandParts(t *testing.T) {
	c, err := ParseCommand("/uwf start flow --agent=a=b --cost-usd '' more")
	if err != nil {
		t.Fatal(err)
	}
	agent, ok := c.Option("agent")
	model, ok2 := c.Option("cost-usd")
	_, ok3 := c.Option("thread")
	if agent != "a=b" || !ok || model != "" || !ok2 || ok3 || !slices.Equal(c.Words(), []string{"flow", "more"}) {
		t.Errorf("%q %v %q %v %v %q", agent, ok, model, ok2, ok3, c.Words())
	}
}

func FuzzCommand(f *testing.F) {
	for _, s := range []string{"/uwf start a --agent=b", "```\n/uwf start\n```", "<!--\n/uwf x", "/uwf resume “a\nb", "/uwf fork 'x\\", "a\r/uwf\u00a0status"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		c, err := ParseCommand(body)
		if c == nil || err != nil {
			return
		}
		if !strings.Contains(strings.ToLower(body), prefix) {
			t.Errorf("a command out of nothing: %q", body)
		}
		if !slices.ContainsFunc(verbs, func(v verb) bool { return v.name == c.Verb }) {
			t.Errorf("verb %q", c.Verb)
		}
		if utf8.ValidString(body) && !utf8.ValidString(c.Text+strings.Join(c.Args, "")) {
			t.Error("broken text")
		}
		for _, a := range c.Args {
			if isOption(a) && !strings.Contains(a, "=") {
				t.Errorf("option %q", a)
			}
		}
	})
}
