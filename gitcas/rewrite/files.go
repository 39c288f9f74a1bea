package rewrite

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/statefile"
	"github.com/united-workforce/uwf/internal/commitmsg"
	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// textRewriter rewrites the texts of a store: files, pages and messages.
type textRewriter struct{ *run }

// cleanText takes what is looked for out of text that nothing depends on, and brings
// the hashes and commit ids in it up to date. It may be a thread's.
func (r textRewriter) cleanText(s, thread string) (string, int) {
	out, count := s, 0
	for _, f := range []Finder{r.o.Find, r.findQuotes(thread)} {
		if f == nil {
			continue
		}
		next, n := f.Replace(out, nil)
		out, count = next, count+n
	}
	return r.nodes.renewTokens(out, thread, r.commits), count
}

// rewritePage rewrites text for people, and files that are not uwf's.
func (r textRewriter) rewritePage(data []byte, place Place, thread string) []byte {
	out, n := r.cleanText(string(data), thread)
	if n > 0 {
		r.report.noteFound(place, "")
	}
	return []byte(out)
}

// fileMentions reports whether a file has to be looked at closely.
func (r textRewriter) fileMentions(data []byte) bool {
	s := string(data)
	out, n := r.cleanText(s, "")
	return n > 0 || out != s
}

// fields replaces the texts of a record's fields and notes where it did.
type fields struct {
	r     *run
	place Place
}

func (f fields) cleanField(what, s string) string {
	if f.r.o.Find == nil || s == "" {
		return s
	}
	out, n := f.r.o.Find.Replace(s, nil)
	if n > 0 {
		f.r.report.noteFound(f.place, what)
	}
	return out
}

// noteName notes a name that holds what is looked for; it stays.
func (f fields) noteName(what, s string) {
	if f.r.o.Find == nil || s == "" {
		return
	}
	if _, n := f.r.o.Find.Replace(s, nil); n > 0 {
		f.r.report.noteName(f.place, what)
	}
}

// threadsFile rewrites threads.yaml. One that can't be read is taken for text.
func (r textRewriter) threadsFile(data []byte, place Place) ([]byte, error) {
	if !r.fileMentions(data) {
		return data, nil
	}
	t, err := statefile.ParseThreads(data)
	if err != nil {
		return r.rewritePage(data, place, ""), nil //nolint:nilerr // what can't be read is text
	}
	f := fields{r.run, place}
	out, err := t.Map(func(id statefile.ThreadID, e statefile.Entry) statefile.Entry {
		return f.cleanEntry(string(id), e)
	}, func(s string) string {
		out, _ := r.cleanText(s, "")
		return out
	})
	if err != nil {
		return nil, err
	}
	return out.Encode(), nil
}

func (f fields) cleanEntry(at string, e statefile.Entry) statefile.Entry {
	n := f.r.nodes
	e.Head, e.Workflow, e.Used.Head = n.recordNow(at, e.Head), n.sharedNow(e.Workflow), n.recordNow(at, e.Used.Head)
	e.Key, e.Title = f.cleanField(at+" key", e.Key), f.cleanField(at+" title", e.Title)
	f.redactPerson(at+" by", e.By)
	f.noteName(at+" work.branch", e.Work.Branch)
	if e.Next != nil {
		e.Next.Answer, e.Next.Poked = n.answerNow(at, e.Next.Answer), n.recordNow(at, e.Next.Poked)
		f.noteName(at+" next.role", e.Next.Role)
		f.redactPerson(at+" next.by", e.Next.By)
	}
	if e.Suspended != nil {
		f.noteName(at+" suspended.role", e.Suspended.Role)
		e.Suspended.Reason = f.cleanField(at+" suspended.reason", e.Suspended.Reason)
		f.redactPerson(at+" suspended.by", e.Suspended.By)
	}
	if e.Pause != nil {
		e.Pause.Reason = f.cleanField(at+" pause.reason", e.Pause.Reason)
		f.redactPerson(at+" pause.by", e.Pause.By)
	}
	for _, a := range e.Attempts {
		f.noteName(at+" attempts", a)
	}
	for k := range e.Limits {
		f.noteName(at+" limits", k)
	}
	return e
}

// redactPerson takes out of who somebody is what is looked for.
func (f fields) redactPerson(what string, by *statefile.By) {
	if by == nil {
		return
	}
	for field, text := range map[string]*string{"login": &by.Login, "url": &by.URL, "name": &by.Name} {
		*text = f.cleanField(what+"."+field, *text)
	}
}

// registryFile rewrites registry.yaml.
func (r textRewriter) registryFile(data []byte, place Place) ([]byte, error) {
	if !r.fileMentions(data) {
		return data, nil
	}
	reg, err := statefile.ParseRegistry(data)
	if err != nil {
		return r.rewritePage(data, place, ""), nil //nolint:nilerr // what can't be read is text
	}
	f := fields{r.run, place}
	now := r.nodes.sharedNow
	out, err := reg.Map(func(name string, e statefile.RegistryEntry) statefile.RegistryEntry {
		f.noteName("a name", name)
		e.Hash = now(e.Hash)
		for i := range e.History {
			e.History[i].Hash = now(e.History[i].Hash)
		}
		return e
	}, func(s string) string {
		out, _ := r.cleanText(s, "")
		return out
	})
	if err != nil {
		return nil, err
	}
	return out.Encode(), nil
}

// versionFile rewrites VERSION, if what it says stays.
func (r textRewriter) versionFile(data []byte, place Place) []byte {
	out, n := r.cleanText(string(data), "")
	if n == 0 {
		return data
	}
	was, err := statefile.ParseVersion(data)
	if is, _ := statefile.ParseVersion([]byte(out)); err == nil && is != was {
		r.report.noteName(place, "")
		return data
	}
	r.report.noteFound(place, "")
	return []byte(out)
}

// day is what became of a history file when it was read last. The next version
// only has lines more.
type day struct{ old, out []byte }

// dayFile rewrites a history file, of which only the new lines are looked at.
func (r textRewriter) dayFile(data []byte, place Place) []byte {
	last := r.days[place.Path]
	if len(last.old) == 0 || !bytes.HasPrefix(data, last.old) || last.old[len(last.old)-1] != '\n' {
		last = day{}
	}
	var b bytes.Buffer
	b.Write(last.out)
	for line := range bytes.Lines(data[len(last.old):]) {
		b.Write(r.rewriteLine(line, place))
	}
	r.days[place.Path] = day{data, b.Bytes()}
	return b.Bytes()
}

// dayPage writes the page of a day anew, of the lines that were rewritten just before.
func (r textRewriter) dayPage(data []byte, place Place) []byte {
	lines := r.days[statefile.DayFilePath(place.Path)]
	if page, err := statefile.DayPage(lines.old); err != nil || !bytes.Equal(page, data) {
		return r.rewritePage(data, place, "")
	}
	if page, err := statefile.DayPage(lines.out); err == nil {
		return page
	}
	return r.rewritePage(data, place, "")
}

// rewriteLine rewrites one line of a history file. Only its texts change: how it is
// written stays.
func (r textRewriter) rewriteLine(line []byte, place Place) []byte {
	var e statefile.Ended
	if err := json.Unmarshal(line, &e); err != nil {
		return r.rewritePage(line, place, "")
	}
	f := fields{r.run, place}
	at := string(e.Thread)
	f.noteName(at+" work.branch", e.Work.Branch)
	if to := r.nodes.recordNow(at, e.Head); to != e.Head {
		r.report.noteEnded(Thread{ID: e.Thread, Old: e.Head, New: to, Ended: true})
	}
	return replaceLiterals(line, func(key, s string) string {
		switch {
		case s == e.Work.Branch, s == e.Reason:
			return s
		case key == "workflow":
			return string(r.nodes.sharedNow(node.Hash(s)))
		case key == "head", key == "steps":
			return string(r.nodes.recordNow(at, node.Hash(s)))
		case node.Hash(s).Valid(), statefile.ThreadID(s).Valid(), len(s) == 40 && strings.Trim(s, "0123456789abcdef") == "":
			return r.nodes.renewTokens(s, at, r.commits)
		}
		return f.cleanField(at, s)
	})
}

// replaceLiterals replaces the values of the string literals of a line of JSON. The line
// is valid JSON; keys stay. fix is told the key before the value.
func replaceLiterals(line []byte, fix func(key, s string) string) []byte {
	var out []byte
	at, key := 0, ""
	for i := 0; i < len(line); {
		if line[i] != '"' {
			i++
			continue
		}
		end := i + 1
		for end < len(line) && line[end] != '"' {
			if line[end] == '\\' {
				end++
			}
			end++
		}
		end = min(end+1, len(line))
		var s string
		switch err := json.Unmarshal(line[i:end], &s); {
		case err != nil:
		case isKey(line[end:]):
			key = s
		default:
			if lit, changed := quoteLike(s, fix(key, s)); changed {
				out = append(append(out, line[at:i]...), lit...)
				at = end
			}
		}
		i = end
	}
	return append(out, line[at:]...)
}

func isKey(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t")
	return len(rest) > 0 && rest[0] == ':'
}

func quoteLike(s, to string) ([]byte, bool) {
	if to == s {
		return nil, false
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(to) != nil {
		return nil, false
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), true
}

// fileName is the name of a file that is not uwf's, without what is looked for.
func (r textRewriter) fileName(s string, place Place) string {
	if r.o.Find == nil {
		return s
	}
	out, n := r.o.Find.Replace(s, nil)
	if n == 0 {
		return s
	}
	r.report.noteFound(place, "(its name)")
	return out
}

// rewriteMessage rewrites the message of a commit: what it quotes, and the hashes in its
// trailers.
func (r textRewriter) rewriteMessage(msg string, id Place) string {
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
		key, value, ok := strings.Cut(line, ": ")
		if ok {
			var m int
			value, m = r.cleanText(value, thread)
			n += m
			line = key + ": " + value
		}
		b.WriteString(line)
	}
	if n > 0 {
		r.report.noteFound(id, "")
	}
	return b.String()
}

// skipCI is the line of a message that keeps CI from running.
const skipCI = "[skip ci]"

// ownTail is how uwf ends a message: the mark, and trailers of its own.
var ownTail = lazyregexp.New(`^\[skip ci\]\n(\n(Uwf-[A-Za-z-]+: [^\n]*\n)+)?$`)
