package table

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// At is the setting at a path. A path that leads nowhere is an *UnknownPathError.
func (s Setting) At(p Path) (Setting, error) {
	cur := s
	for i, key := range p {
		switch {
		case cur.Fields != nil:
			f := slices.IndexFunc(cur.Fields, func(f Field) bool { return f.Name == key })
			if f < 0 {
				advice := cur.adviceFor(key)
				if i >= 2 { // below a name that people chose
					advice += "; a name with a dot in it stands in quotes"
				}
				return Setting{}, &UnknownPathError{Path: p, At: i, Advice: advice}
			}
			cur = cur.Fields[f].Setting
		case cur.Entry != nil:
			hidden := cur.Secretly != nil && cur.Secretly(key)
			if cur = cur.Entry(key); hidden {
				cur.Secret = true
			}
		default:
			return Setting{}, &UnknownPathError{Path: p, At: i, Advice: fmt.Sprintf("%s is a %s", p[:i], cur.Kind)}
		}
	}
	return cur, nil
}

// UnknownPathError says that there is no such setting.
type UnknownPathError struct {
	Path   Path
	At     int // the first key that is wrong
	Advice string
}

func (e *UnknownPathError) Error() string {
	return fmt.Sprintf("there is no setting %.200s: unknown key %.80q; %s", e.Path.String(), e.Path[e.At], e.Advice)
}

// plainDuration writes a time without parts that are zero: 2h, not 2h0m0s.
func plainDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
