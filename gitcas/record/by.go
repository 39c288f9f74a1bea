package record

import (
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/internal/text"
)

// Kinds of a By.
const (
	// ByForge is a person whom the forge named for the event that arrived, and who had
	// the right to what they did.
	ByForge = "forge"
	// ByBot is an app of the forge, named in the same way.
	ByBot = "bot"
	// ByLocal is whoever git on a machine says. Anybody can set that.
	ByLocal = "local"
)

// By says who did something: started a thread, answered it, cancelled it.
type By struct {
	Kind string `json:"kind"` // ByForge, ByBot or ByLocal
	// Login and ID are the account's, at the forge; an ID outlives a change of the
	// login. 0: not known.
	Login string `json:"login,omitempty"`
	ID    int64  `json:"id,omitempty"`
	// URL is where it was done: the address of the comment, the issue or the run.
	URL string `json:"url,omitempty"`
	// Name is what git has for its user, for ByLocal alone.
	Name string `json:"name,omitempty"`
}

// Limits of a By's texts, in bytes.
const (
	maxByName = 200
	maxByURL  = 2000
)

// errBy is wrapped by all that Check says.
var errBy = errors.New("not somebody who can have done it")

// Validate refuses what no By is: other kinds, a forge's without a login, a name where
// none belongs, texts that are too long or are no single line.
func (b By) Validate() error {
	switch {
	case b.Kind != ByForge && b.Kind != ByBot && b.Kind != ByLocal:
		return fmt.Errorf("%w: kind %.40q is none of %s, %s, %s", errBy, b.Kind, ByForge, ByBot, ByLocal)
	case b.Kind == ByLocal && (b.Login != "" || b.ID != 0 || b.URL != "" || b.Name == ""):
		return fmt.Errorf("%w: of kind %s it has a name, and nothing else", errBy, ByLocal)
	case b.Kind != ByLocal && (b.Login == "" || b.Name != ""):
		return fmt.Errorf("%w: of kind %s it has a login, and no name", errBy, b.Kind)
	case b.ID < 0 || b.ID > maxByID:
		return fmt.Errorf("%w: id %d is out of range", errBy, b.ID)
	}
	for _, f := range []struct {
		name, text string
		most       int
	}{{"login", b.Login, maxByName}, {"name", b.Name, maxByName}, {"url", b.URL, maxByURL}} {
		if len(f.text) > f.most || !text.IsLine(f.text) {
			return fmt.Errorf("%w: %s %.60q is no line of at most %d bytes", errBy, f.name, f.text, f.most)
		}
	}
	return nil
}

// maxByID is what every reader of JSON keeps.
const maxByID = 1<<53 - 1

// Line is so much of a text as By has room for, on one line, with nothing in it that moves
// a cursor or turns the direction of text around.
func Line(s string) string {
	s = text.Line(strings.Map(func(r rune) rune {
		if text.IsUnsafe(r) {
			return ' ' // a name of nothing else is none
		}
		return r
	}, s))
	if len(s) > maxByName {
		s = strings.TrimSpace(strings.ToValidUTF8(s[:maxByName], ""))
	}
	return s
}

// String is how people are shown it, without an address: a login as it is, and never
// what only a machine's git says as if the forge did.
func (b By) String() string {
	switch b.Kind {
	case ByLocal:
		return text.Cut(b.Name, maxShown) + ", as git on their machine says"
	case ByBot:
		return text.Cut(b.Login, maxShown) + " (a bot)"
	}
	return text.Cut(b.Login, maxShown)
}

// Account is String with the account's id.
func (b By) Account() string {
	if b.ID == 0 {
		return b.String()
	}
	return fmt.Sprintf("%s (id %d)", b, b.ID)
}

// maxShown is so much of a name that what is said of it is still seen, in bytes with the
// ellipsis.
const maxShown = 103

// Same reports whether two are one account at the forge. Of whom no id is known the
// logins are compared. ok is false where that can't be said: one of them is only local.
func (b By) Same(o By) (same, ok bool) {
	switch {
	case b.Kind == ByLocal || o.Kind == ByLocal:
		return false, false
	case b.ID != 0 && o.ID != 0:
		return b.ID == o.ID, true
	}
	return strings.EqualFold(b.Login, o.Login), true
}
