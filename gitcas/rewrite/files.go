package rewrite

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/internal/commitmsg"
	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// textRewriter rewrites the texts that stand in one place: files, pages and messages.
type textRewriter struct {
	*run
	path string
}

// cleanText takes what is looked for out of text that nothing depends on, and brings
// the hashes and commit ids in it up to date. It may be a thread's.
func (r textRewriter) cleanText(s, thread string) (string, int) {
	out, count := r.o.Find.Replace(s, nil)
	if quotes := r.report.findQuotes(thread); quotes != nil {
		var n int
		out, n = quotes.Replace(out, nil)
		count += n
	}
	return r.nodes.renewTokens(out, thread, r.commits), count
}

// rewritePage rewrites text for people, and files that are not uwf's.
func (r textRewriter) rewritePage(data []byte, thread string) []byte {
	out, n := r.cleanText(string(data), thread)
	if n > 0 {
		r.report.noteFound(r.path, "")
	}
	return []byte(out)
}

// versionFile rewrites VERSION as text, unless it would say another thing then: a store keeps
// its id.
func (r textRewriter) versionFile(data []byte) []byte {
	out, n := r.cleanText(string(data), "")
	if n == 0 {
		return data
	}
	was, err := statefile.ParseVersion(data)
	if is, _ := statefile.ParseVersion([]byte(out)); err == nil && is != was {
		r.report.noteName(r.path, "")
		return data
	}
	r.report.noteFound(r.path, "")
	return []byte(out)
}

// fileMentions reports whether a file has to be looked at closely.
func (r textRewriter) fileMentions(text string) bool {
	out, n := r.cleanText(text, "")
	return n > 0 || out != text
}

// cleanField takes what is looked for out of a field, and notes where it did.
func (r textRewriter) cleanField(what, s string) string {
	out, n := r.o.Find.Replace(s, nil)
	if n > 0 {
		r.report.noteFound(r.path, what)
	}
	return out
}

// noteName notes a name that holds what is looked for; it stays.
func (r textRewriter) noteName(what, s string) {
	if _, n := r.o.Find.Replace(s, nil); n > 0 {
		r.report.noteName(r.path, what)
	}
}

// threadsFile rewrites threads.yaml. One that can't be read is taken for text.
func (r textRewriter) threadsFile(data []byte) ([]byte, error) {
	t, err := statefile.ParseThreads(data)
	if err != nil || !r.fileMentions(string(data)) {
		return r.rewritePage(data, ""), nil //nolint:nilerr // what can't be read is text
	}
	out, err := t.Map(func(id statefile.ThreadID, e statefile.Entry) statefile.Entry {
		return r.cleanEntry(string(id), e)
	}, r.cleanRest)
	if err != nil {
		return nil, err
	}
	return out.Encode(), nil
}

// cleanRest cleans what stands in no field of a list.
func (r textRewriter) cleanRest(s string) string {
	out, _ := r.cleanText(s, "")
	return out
}

func (r textRewriter) cleanEntry(at string, e statefile.Entry) statefile.Entry {
	n := r.nodes
	e.Head, e.Workflow, e.Used.Head = n.recordNow(at, e.Head), n.sharedNow(e.Workflow), n.recordNow(at, e.Used.Head)
	e.Key, e.Title = r.cleanField(at+" key", e.Key), r.cleanField(at+" title", e.Title)
	r.redactPerson(at+" by", e.By)
	r.noteName(at+" work.branch", e.Work.Branch)
	if e.Next != nil {
		e.Next.Answer, e.Next.Poked = n.answerNow(at, e.Next.Answer), n.recordNow(at, e.Next.Poked)
		r.noteName(at+" next.role", e.Next.Role)
		r.redactPerson(at+" next.by", e.Next.By)
	}
	if e.Suspended != nil {
		r.noteName(at+" suspended.role", e.Suspended.Role)
		e.Suspended.Reason = r.cleanField(at+" suspended.reason", e.Suspended.Reason)
		r.redactPerson(at+" suspended.by", e.Suspended.By)
	}
	if e.Pause != nil {
		e.Pause.Reason = r.cleanField(at+" pause.reason", e.Pause.Reason)
		r.redactPerson(at+" pause.by", e.Pause.By)
	}
	for _, a := range e.Attempts {
		r.noteName(at+" attempts", a)
	}
	for k := range e.Limits {
		r.noteName(at+" limits", k)
	}
	return e
}

// redactPerson takes out of who somebody is what is looked for.
func (r textRewriter) redactPerson(what string, by *statefile.By) {
	if by == nil {
		return
	}
	for field, text := range map[string]*string{"login": &by.Login, "url": &by.URL, "name": &by.Name} {
		*text = r.cleanField(what+"."+field, *text)
	}
}

// registryFile rewrites registry.yaml.
func (r textRewriter) registryFile(data []byte) ([]byte, error) {
	reg, err := statefile.ParseRegistry(data)
	if err != nil || !r.fileMentions(string(data)) {
		return r.rewritePage(data, ""), nil //nolint:nilerr // what can't be read is text
	}
	out, err := reg.Map(func(name string, e statefile.RegistryEntry) statefile.RegistryEntry {
		r.noteName("a name", name)
		e.Hash = r.nodes.sharedNow(e.Hash)
		for i := range e.History {
			e.History[i].Hash = r.nodes.sharedNow(e.History[i].Hash)
		}
		return e
	}, r.cleanRest)
	if err != nil {
		return nil, err
	}
	return out.Encode(), nil
}

// formerFile takes the nodes out of a list of former hashes that are other ones now: what was
// taken out of them could be confirmed by the hash that they had with it.
func (r textRewriter) formerFile(list []statefile.Former) ([]byte, error) {
	return statefile.EncodeFormer(slices.DeleteFunc(list, func(f statefile.Former) bool {
		_, changed := r.nodes.quotedNow(f.Hash, "")
		return changed
	}))
}

// dayTexts is what became of a history file when it was read last.
type dayTexts struct{ old, out []byte }

// dayFile rewrites a history file line by line.
func (r textRewriter) dayFile(data []byte) []byte {
	out := data
	if r.fileMentions(string(data)) {
		out = nil
		for line := range strings.Lines(string(data)) {
			out = append(out, r.rewriteLine(line)...)
		}
	}
	r.days[r.path] = dayTexts{data, out}
	return out
}

// dayPage writes the page of a day anew, of the lines that were rewritten just before.
func (r textRewriter) dayPage(data []byte) []byte {
	lines := r.days[layout.DayFileOf(r.path)]
	was, err := statefile.DayPage(lines.old)
	now, err2 := statefile.DayPage(lines.out)
	if err != nil || err2 != nil || string(was) != string(data) {
		return r.rewritePage(data, "")
	}
	return now
}

// rewriteLine rewrites one line of a history file. One that can't be read, or written, is
// taken for text.
func (r textRewriter) rewriteLine(line string) []byte {
	var e statefile.Ended
	if json.Unmarshal([]byte(line), &e) != nil || !r.fileMentions(line) {
		return r.rewritePage([]byte(line), "")
	}
	at, n := string(e.Thread), r.nodes
	if to := n.recordNow(at, e.Head); to != e.Head {
		r.report.noteEnded(Thread{ID: e.Thread, Old: e.Head, New: to, Ended: true})
		e.Head = to
	}
	e.Workflow = n.sharedNow(e.Workflow)
	for i, h := range e.Steps {
		e.Steps[i] = n.recordNow(at, h)
	}
	e.Commit = n.renewTokens(e.Commit, at, r.commits)
	r.noteName(at+" work.branch", e.Work.Branch)
	for i, u := range e.Usage {
		r.noteName(at+" usage.role", u.Role)
		e.Usage[i].Model = r.cleanField(at+" usage.model", u.Model)
	}
	for _, text := range []*string{&e.Title, &e.Note, &e.Result, &e.Key} {
		*text = r.cleanField(at, *text)
	}
	r.redactPerson(at, e.By)
	r.redactPerson(at, e.ClosedBy)
	out, err := statefile.EncodeEnded(e)
	if err != nil {
		return r.rewritePage([]byte(line), "")
	}
	return out
}

// rewriteMessage rewrites the message of a commit: what it quotes, and the hashes in its
// trailers.
func (r textRewriter) rewriteMessage(msg string) string {
	thread := ""
	for _, t := range commitmsg.Parse(msg).Trailers {
		if t.Key == "Uwf-Thread" {
			thread = t.Value
		}
	}
	if !utf8.ValidString(msg) {
		msg = strings.ToValidUTF8(msg, "\uFFFD")
	}
	// What follows the mark is the format's own, but for the trailers' values: the
	// mark itself keeps CI from running on commits that are pushed anew.
	text, tail := msg, ""
	if at := strings.LastIndex(msg, "\n"+skipCI+"\n"); at >= 0 && ownTail.MatchString(msg[at+1:]) {
		text, tail = msg[:at+1], msg[at+1:]
	}
	text, n := r.cleanText(text, thread)
	var b strings.Builder
	b.WriteString(text)
	for line := range strings.Lines(tail) {
		if key, value, ok := strings.Cut(line, ": "); ok {
			value, m := r.cleanText(value, thread)
			line, n = key+": "+value, n+m
		}
		b.WriteString(line)
	}
	if n > 0 {
		r.report.noteFound(r.path, "")
	}
	return b.String()
}

// skipCI is the line of a message that keeps CI from running.
const skipCI = "[skip ci]"

// ownTail is how uwf ends a message: the mark, and trailers of its own.
var ownTail = lazyregexp.New(`^\[skip ci\]\n(\n(Uwf-[A-Za-z-]+: [^\n]*\n)+)?$`)
