package moderator

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/record"
)

// Each way in which a word is no approval, and the ways in which it is one.
func TestApproval(t *testing.T) {
	forge := func(login string, id int64) *record.By {
		return &record.By{Kind: record.ByForge, Login: login, ID: id, URL: "https://forge.example/c/1"}
	}
	alice, bob := forge("alice", 1), forge("bob", 2)
	local := &record.By{Kind: record.ByLocal, Name: "Bob"}
	said := func(text string, by *record.By) record.Word {
		return record.Word{Do: record.DoResume, Text: text, By: by}
	}
	starter, author, both := []string{workflow.ApprovalStarter}, []string{workflow.ApprovalAuthor}, []string{workflow.ApprovalStarter, workflow.ApprovalAuthor}
	for name, tt := range map[string]struct {
		not     []string
		words   []record.Word
		unasked bool
		started []record.By
		author  *record.By
		unnamed bool   // somebody wrote what it is about, and nobody knows who
		want    string // empty: it is one
	}{
		"a person of the forge":          {words: []record.Word{said("yes", bob)}},
		"who also started it":            {words: []record.Word{said("yes", alice)}, started: []record.By{*alice}},
		"another than the starter":       {not: starter, words: []record.Word{said("yes", bob)}, started: []record.By{*alice}},
		"another than both":              {not: both, words: []record.Word{said("yes", bob)}, started: []record.By{*alice}, author: forge("carol", 3)},
		"nobody wrote what it is about":  {not: both, words: []record.Word{said("yes", bob)}, started: []record.By{*alice}},
		"two people":                     {words: []record.Word{said("yes", bob), said("and quickly", alice)}},
		"somebody else let it go on":     {not: starter, words: []record.Word{said("yes", bob), said(" \n", alice)}, started: []record.By{*alice}},
		"asked nobody":                   {words: []record.Word{said("yes", bob)}, unasked: true, want: "nobody was asked"},
		"nobody answered":                {want: "nobody has answered"},
		"without a word":                 {words: []record.Word{said("", bob)}, want: "nobody has answered"},
		"nobody knows who":               {words: []record.Word{said("yes", nil)}, want: "nobody knows who answered"},
		"git's user":                     {words: []record.Word{said("yes", local)}, want: "the forge doesn't confirm"},
		"git's user of a forge's name":   {words: []record.Word{said("yes", &record.By{Kind: record.ByLocal, Name: "@bob"})}, want: "the forge doesn't confirm"},
		"a bot":                          {words: []record.Word{said("yes", &record.By{Kind: record.ByBot, Login: "bob[bot]", ID: 2})}, want: "only a person can approve"},
		"the starter":                    {not: starter, words: []record.Word{said("yes", alice)}, started: []record.By{*alice}, want: "somebody else than who started the thread: alice"},
		"the starter under a new login":  {not: starter, words: []record.Word{said("yes", forge("alice2", 1))}, started: []record.By{*alice}, want: "somebody else than who started"},
		"the starter in capitals":        {not: starter, words: []record.Word{said("yes", forge("Alice", 0))}, started: []record.By{*alice}, want: "somebody else than who started"},
		"another with the old login":     {not: starter, words: []record.Word{said("yes", forge("alice", 9))}, started: []record.By{*alice}},
		"who forked it":                  {not: starter, words: []record.Word{said("yes", bob)}, started: []record.By{*alice, *bob}, want: "somebody else than who started"},
		"the starter is only local":      {not: starter, words: []record.Word{said("yes", bob)}, started: []record.By{*local}, want: "only a name is known"},
		"nobody knows who started it":    {not: starter, words: []record.Word{said("yes", bob)}, want: "nobody knows who that was"},
		"the author":                     {not: author, words: []record.Word{said("yes", bob)}, author: forge("bob", 0), want: "wrote what it is about"},
		"nobody knows the author":        {not: author, words: []record.Word{said("yes", bob)}, unnamed: true, want: "nobody knows who that was"},
		"a bot started it":               {not: starter, words: []record.Word{said("yes", bob)}, started: []record.By{{Kind: record.ByBot, Login: "x[bot]", ID: 9}}, want: "nobody knows for whom"},
		"a poke without a word":          {not: starter, words: []record.Word{said("yes", bob), {Do: record.DoPoke, By: alice}}, started: []record.By{*alice}, want: "somebody else than who started"},
		"a poke alone":                   {words: []record.Word{{Do: record.DoPoke, Text: "yes", By: bob}}, want: "nobody has answered"},
		"one of two counts for nothing":  {words: []record.Word{said("yes", bob), said("and more", local)}, want: "the forge doesn't confirm"},
		"the starter adds to the answer": {not: starter, words: []record.Word{said("yes", bob), said("and more", alice)}, started: []record.By{*alice}, want: "somebody else than who started"},
	} {
		t.Run(name, func(t *testing.T) {
			a := Approval{Asked: !tt.unasked, Words: tt.words, Starters: tt.started, Author: tt.author, Authored: tt.unnamed || tt.author != nil}
			got := a.Refusal(tt.not)
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
			d := Decision{From: "planner", Status: "approved", Edge: workflow.Edge{Approval: &workflow.Approval{Not: tt.not}}}
			if err := Approve(d, a); (err == nil) != (got == "") || err != nil && !strings.Contains(err.Error(), "role planner may decide approved only after a person's approval, and there is none") {
				t.Errorf("Approve says %v", err)
			}
		})
	}
	if err := Approve(Decision{}, Approval{}); err != nil {
		t.Errorf("an edge that nobody guards: %v", err)
	}
}
