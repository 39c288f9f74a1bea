package report

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas/record"
)

// Who decided stands in the comment, with the words; what people are called and what they
// said does nothing there.
func TestPeople(t *testing.T) {
	alice := &record.By{Kind: record.ByForge, Login: "alice", ID: 1, URL: "https://forge.example/o/r/issues/7"}
	for name, tt := range map[string]struct {
		started *record.By
		said    []Said
		want    []string
		never   []string
	}{
		"nobody": {never: []string{"<details>"}},
		"started": {started: alice, want: []string{
			"<details><summary>Started by <code>＠alice</code></summary>", "- `@alice` (id 1) [started it](https://forge.example/o/r/issues/7).",
		}},
		"answered": {started: alice, said: []Said{{2, record.Word{Do: record.DoResume, Question: "Which?", Text: "the second\n\n- and\n- more", By: &record.By{Kind: record.ByForge, Login: "bob", ID: 2}}}},
			want: []string{"<summary>Started by <code>＠alice</code>, answered by <code>＠bob</code></summary>", "- `@bob` (id 2) answered before step 2:\n\n  > the second\n", "  > - and\n  > - more\n"}},
		"let go on":  {said: []Said{{3, record.Word{Do: record.DoResume, By: alice}}}, want: []string{"<summary>Resumed by <code>＠alice</code></summary>", "before step 3, without a word."}},
		"done again": {said: []Said{{3, record.Word{Do: record.DoPoke, Text: "smaller", By: alice}}}, want: []string{"[had the step done again](https://forge.example/o/r/issues/7) before step 3"}},
		"local":      {started: &record.By{Kind: record.ByLocal, Name: "@alice"}, want: []string{"<code>＠alice</code>, as git on their machine says", "- `＠alice`, as git on their machine says, started it."}},
		"a bot":      {started: &record.By{Kind: record.ByBot, Login: "x[bot]", ID: 3}, want: []string{"- `@x[bot]`, a bot (id 3) started it."}},
		"unknown":    {said: []Said{{2, record.Word{Do: record.DoResume, Question: "?", Text: "yes"}}}, want: []string{"<summary>Who decided</summary>", "- Somebody answered before step 2:"}},
		"hostile": {
			started: &record.By{Kind: record.ByLocal, Name: "`</code><b>@team|x\\ <!-- uwf:thread=X -->", URL: "https://x) [y](javascript:z"},
			said:    []Said{{2, record.Word{Do: record.DoResume, Question: "?", Text: "@team fixes #1\n/uwf cancel\n</details>\n![x](https://x/y.png)", By: &record.By{Kind: record.ByForge, Login: "a</summary>", URL: "javascript:alert(1)"}}}},
			never:   []string{"@team fixes", "\n/uwf cancel", "\n</details>\n  ", "<code>＠a</", "<code>'</code>", "javascript:", "![x]", "<!-- uwf:thread"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := newPage(Thread{ID: "01JD0000000000000000000001", Subject: 7, Started: tt.started, Said: tt.said}).whoDecided()
			for _, w := range tt.want {
				if !strings.Contains(got, w) {
					t.Errorf("it doesn't say %q:\n%s", w, got)
				}
			}
			for _, n := range tt.never {
				if strings.Contains(got, n) {
					t.Errorf("it says %q:\n%s", n, got)
				}
			}
		})
	}
	var many []Said
	for i := range 300 {
		many = append(many, Said{i, record.Word{Do: record.DoResume, Question: "?", Text: strings.Repeat("word ", 1000), By: alice}})
	}
	got := Comment(Thread{ID: "01JD0000000000000000000001", State: Waiting, Subject: 7, Started: alice, Said: many})
	if len(got) > MaxComment || !strings.Contains(got, "290 more") {
		t.Errorf("%d bytes", len(got))
	}
}
