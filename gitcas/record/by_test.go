package record

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas/node"
)

var alice = By{Kind: ByForge, Login: "alice", ID: 7, URL: "https://forge.example/o/r/issues/7#issuecomment-1"}

// What is no By is read from no record, whatever the schema says.
func TestByRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		by   any
		want string
	}{
		"text":                  {"alice", "must be an object"},
		"null":                  {nil, "must be an object"},
		"empty":                 {map[string]any{}, "kind of a StartNode's by must be a string"},
		"another kind":          {map[string]any{"kind": "admin", "login": "a"}, "is none of forge, bot, local"},
		"no login":              {map[string]any{"kind": "forge", "id": int64(7)}, "it has a login, and no name"},
		"a bot without a login": {map[string]any{"kind": "bot"}, "it has a login, and no name"},
		"a login and a name":    {map[string]any{"kind": "forge", "login": "a", "name": "b"}, "it has a login, and no name"},
		"no name":               {map[string]any{"kind": "local"}, "it has a name, and nothing else"},
		"local with a login":    {map[string]any{"kind": "local", "name": "a", "login": "b"}, "it has a name, and nothing else"},
		"local with an id":      {map[string]any{"kind": "local", "name": "a", "id": int64(7)}, "it has a name, and nothing else"},
		"local with an address": {map[string]any{"kind": "local", "name": "a", "url": "https://x"}, "it has a name, and nothing else"},
		"negative id":           {map[string]any{"kind": "forge", "login": "a", "id": int64(-7)}, "id -7 is out of range"},
		"large id":              {map[string]any{"kind": "forge", "login": "a", "id": int64(1 << 53)}, "id 9007199254740992 is out of range"},
		"id is text":            {map[string]any{"kind": "forge", "login": "a", "id": "7"}, "id of a StartNode's by must be a whole number"},
		"unknown field":         {map[string]any{"kind": "forge", "login": "a", "team": "x"}, "unknown fields"},
		"long login":            {map[string]any{"kind": "forge", "login": strings.Repeat("x", 201)}, "no line of at most 200 bytes"},
		"long name":             {map[string]any{"kind": "local", "name": strings.Repeat("x", 201)}, "no line of at most 200 bytes"},
		"long address":          {map[string]any{"kind": "forge", "login": "a", "url": strings.Repeat("x", 2001)}, "no line of at most 2000 bytes"},
		"two lines":             {map[string]any{"kind": "local", "name": "a\nUwf-By: b"}, "no line of at most"},
		"escape":                {map[string]any{"kind": "local", "name": "a\x1b[2J"}, "no line of at most"},
		"right to left":         {map[string]any{"kind": "local", "name": "a\u202eb"}, "no line of at most"},
	} {
		p := map[string]any{"workflow": string(h1), "prompt": "p", "cwd": "", "by": tt.by}
		if _, err := ParseStart(node.Node{Type: OwnStartSchema, Payload: p}); !errors.Is(err, ErrNotRecord) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
}

// Accounts are compared by their ids, which a new login doesn't change.
func TestSame(t *testing.T) {
	local := By{Kind: ByLocal, Name: "alice"}
	for _, tt := range []struct {
		a, b     By
		same, ok bool
	}{
		{alice, alice, true, true},
		{alice, By{Kind: ByForge, Login: "renamed", ID: 7}, true, true},
		{alice, By{Kind: ByForge, Login: "alice", ID: 8}, false, true},
		{alice, By{Kind: ByForge, Login: "ALICE"}, true, true},
		{alice, By{Kind: ByForge, Login: "bob"}, false, true},
		{alice, local, false, false},
		{local, local, false, false},
	} {
		if same, ok := tt.a.Same(tt.b); same != tt.same || ok != tt.ok {
			t.Errorf("%v and %v: %v, %v", tt.a, tt.b, same, ok)
		}
	}
}

// What git says of a person is shown as what git says.
func TestByShown(t *testing.T) {
	for want, b := range map[string]By{
		"alice": alice, "renovate[bot] (a bot)": {Kind: ByBot, Login: "renovate[bot]"}, "@alice, as git on their machine says": {Kind: ByLocal, Name: "@alice"},
	} {
		if b.String() != want {
			t.Errorf("%q, want %q", b.String(), want)
		}
	}
}

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"Alice": "Alice", "  A\tB\r\nC ": "A B C", "a\x1b[2Jb": "a [2Jb", "a\u202eb": "a b", "a\ufeff\u009bb": "a b", "\xffa": "\uFFFDa", "\n": "",
		strings.Repeat("é", 150): strings.Repeat("é", 100),
	} {
		got := Line(in)
		if got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
		if b := (By{Kind: ByLocal, Name: got}); got != "" && b.Validate() != nil {
			t.Errorf("%q: %v", in, b.Validate())
		}
	}
}

func TestAnswer(t *testing.T) {
	want := Answer{Words: []Word{
		{Do: DoResume, Role: "a", Question: "Which?", Text: "the second", By: &alice, AtMs: 5},
		{Do: DoPoke, Role: "a", Text: "", By: &By{Kind: ByLocal, Name: "Bob"}, AtMs: 6},
		{Do: DoResume, Role: "a", Text: "go on", AtMs: 7},
	}}
	got, err := ParseAnswer(made(t, AnswerSchema)(want.Node(at)))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read back as %+v, %v", got, err)
	}
	word := func() map[string]any {
		return map[string]any{"do": "resume", "role": "a", "text": "yes", "atMs": int64(1)}
	}
	with := func(key string, v any) map[string]any { w := word(); w[key] = v; return w }
	many := make([]any, MaxWords+1)
	for i := range many {
		many[i] = word()
	}
	for name, tt := range map[string]struct {
		payload any
		want    string
	}{
		"no object":      {"yes", "must be an object"},
		"no words":       {map[string]any{}, "words of an Answer must be a list"},
		"none":           {map[string]any{"words": []any{}}, "must be a list of 1 to 100 words"},
		"too many":       {map[string]any{"words": many}, "must be a list of 1 to 100 words"},
		"no list":        {map[string]any{"words": word()}, "words of an Answer must be a list"},
		"no objects":     {map[string]any{"words": []any{"yes"}}, "must be a list of objects"},
		"more":           {map[string]any{"words": []any{word()}, "x": "y"}, "unknown fields"},
		"more in a word": {map[string]any{"words": []any{with("x", "y")}}, "unknown fields"},
		"text no text":   {map[string]any{"words": []any{with("text", nil)}}, "text of a word of an Answer must be a string"},
		"time no number": {map[string]any{"words": []any{with("atMs", "1")}}, "atMs of a word of an Answer must be a whole number"},
		"by is nobody":   {map[string]any{"words": []any{with("by", map[string]any{"kind": "forge"})}}, "it has a login"},
	} {
		if _, err := ParseAnswer(node.Node{Type: AnswerSchema, Payload: tt.payload}); !errors.Is(err, ErrNotRecord) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
	if _, err := ParseAnswer(node.Node{Type: node.String, Payload: "yes"}); !errors.Is(err, ErrNotRecord) {
		t.Errorf("a text: %v", err)
	}
}
