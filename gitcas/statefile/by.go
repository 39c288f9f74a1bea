package statefile

import (
	"math"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/gitcas/record"
)

// By says who did something, see record.By.
type By = record.By

// readBy reads a mapping of threads.yaml.
func readBy(v value, what string) (*By, error) {
	var b By
	err := readFields(v, what, func(p pair) (ok bool, err error) {
		at := what + "." + p.key
		switch p.key {
		case "kind":
			b.Kind, err = readText(p.val, at, maxRoleText)
		case "login":
			b.Login, err = readText(p.val, at, maxKeyText)
		case "id":
			b.ID, err = readInt(p.val, at, math.MaxInt64)
		case "url":
			b.URL, err = readText(p.val, at, maxReasonText)
		case "name":
			b.Name, err = readText(p.val, at, maxKeyText)
		default:
			return false, nil
		}
		return true, err
	})
	if err == nil {
		err = b.Check()
		if err != nil {
			err = newMalformedError(v.line, "%s: %v", what, err)
		}
	}
	return &b, err
}

// writeBy writes it below an indented key; nothing where there is none.
func writeBy(b *strings.Builder, indent string, by *By) {
	if by == nil {
		return
	}
	b.WriteString(indent + "by:\n")
	for _, f := range [][2]string{{"kind", by.Kind}, {"login", by.Login}, {"url", by.URL}, {"name", by.Name}} {
		if f[1] != "" {
			b.WriteString(indent + "  " + f[0] + ": " + writeWord(f[1]) + "\n")
		}
	}
	if by.ID != 0 {
		b.WriteString(indent + "  id: " + strconv.FormatInt(by.ID, 10) + "\n")
	}
}

// areStorable reports whether every one of some can be read back as it is.
func areStorable(all ...*By) bool {
	for _, b := range all {
		if b != nil && b.Check() != nil {
			return false
		}
	}
	return true
}
