package story

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/gitcas"
	"github.com/united-workforce/uwf/gitcas/gitobj"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/text"
)

// Person is whom an engine's deeds are done for.
type Person struct {
	record.By
	// Email is for the author of the state branch's commits; empty: one that leads
	// nowhere.
	Email string
}

// NoAddress is the address of a person who has none.
const NoAddress = "uwf@localhost"

// OnRecord is who does something, for the record; nil: nobody.
func (p *Person) OnRecord() *record.By {
	if p == nil {
		return nil
	}
	by := p.By
	return &by
}

// Sign makes a change the deed of a person: its commit has them as author, and a trailer
// that says by what right. Without a person it is uwf's own.
func Sign(c *gitcas.Change, p *Person) *gitcas.Change {
	if c == nil || p == nil {
		return c
	}
	if name := authorText(cmp.Or(p.Login, p.Name)); name != "" {
		c.Author = &gitobj.Author{Name: name, Email: cmp.Or(authorText(p.Email), NoAddress)}
	}
	c.Trailers = append(c.Trailers, gitcas.Trailer{Key: "Uwf-By", Value: describeBy(p.By)})
	return c
}

// SetEntry gives a thread another entry by a change, which says what became of it, and
// whose deed that was.
func SetEntry(c *gitcas.Change, id gitcas.ThreadID, entry gitcas.Entry, what, body string, by *Person) *gitcas.Change {
	c.Subject, c.Body, c.Trailers = Subject(entry.Title, id, what), body, EntryTrailers(id, entry)
	c.Threads = map[gitcas.ThreadID]*gitcas.Entry{id: &entry}
	return Sign(c, by)
}

// authorText is text as it can stand in a commit's author.
func authorText(s string) string {
	return strings.Trim(strings.NewReplacer("<", "", ">", "").Replace(text.OneLine(s)), " .,:;\"'")
}

// describeBy is who did something as a trailer has it: the kind first, so that no name can
// pass for another. Forges turn logins after an @ into mentions, and numbers and addresses
// into references: it has none of these.
func describeBy(b record.By) string {
	name := strings.NewReplacer("@", "", "#", "", "(", "", ")", "", ":", "").Replace(cmp.Or(b.Login, b.Name))
	var more []string
	if b.ID != 0 {
		more = append(more, "id "+strconv.FormatInt(b.ID, 10))
	}
	if _, address, ok := strings.Cut(b.URL, "://"); ok {
		more = append(more, address)
	}
	line := b.Kind + ": " + strings.TrimSpace(name)
	if len(more) > 0 {
		line += " (" + strings.Join(more, ", ") + ")"
	}
	return line
}

// FormatRef is a reference as a message shows it, also of none.
func FormatRef(h *node.Hash) string {
	if h == nil {
		return "none"
	}
	return string(*h)
}
