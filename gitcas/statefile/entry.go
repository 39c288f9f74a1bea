package statefile

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/gitcas/node"
)

// Limits on what an entry holds: text that people or agents chose is short.
const (
	maxKeyText    = 1000
	maxTitleText  = 1000
	maxRoleText   = 200
	maxReasonText = 16 << 10
	maxAttempts   = 1000
	maxLimits     = 50
)

// attemptRefs is the folder of the refs that an entry's attempts name.
const attemptRefs = "refs/uwf/attempts/"

// readEntry reads one value of threads.yaml: a bare head, or a mapping.
func readEntry(v value) (Entry, error) {
	if v.kind == scalar {
		h, err := readHash(v, "head")
		return Entry{Head: h, Status: StatusActive}, err
	}
	if v.kind != mapping {
		return Entry{}, newMalformedError(v.line, "an entry is a hash or a mapping")
	}
	e := Entry{Status: StatusActive}
	for _, p := range v.pairs {
		if p.val.isNull() && slices.Contains(entryKeys(), p.key) {
			continue
		}
		if err := e.readField(p); err != nil {
			return Entry{}, err
		}
	}
	if e.Head == "" {
		return Entry{}, newMalformedError(v.line, "no head")
	}
	return e, nil
}

// entryKeys are the keys that readField knows.
func entryKeys() []string {
	return []string{"head", "status", "workflow", "key", "work", "comment", "pr", "next", "since", "suspended", "pause", "attempts", "limits", "title", "by", "used"}
}

func (e *Entry) readField(p pair) (err error) {
	switch p.key {
	case "head":
		e.Head, err = readHash(p.val, p.key)
	case "status":
		e.Status, err = readStatus(p.val)
	case "workflow":
		e.Workflow, err = readHash(p.val, p.key)
	case "key":
		e.Key, err = readText(p.val, p.key, maxKeyText)
	case "work":
		e.Work, err = readWork(p.val)
	case "comment":
		e.Comment, err = readInt(p.val, p.key, math.MaxInt64)
	case "pr":
		var n int64
		n, err = readInt(p.val, p.key, math.MaxInt32)
		e.PR = int(n)
	case "next":
		e.Next, e.Deliver, err = readNext(p.val)
	case "since":
		e.Since, err = readInt(p.val, p.key, math.MaxInt64)
	case "suspended":
		e.Suspended, err = readSuspended(p.val)
	case "pause":
		e.Pause, err = readPause(p.val)
	case "attempts":
		e.Attempts, err = readAttempts(p.val)
	case "limits":
		e.Limits, err = readLimits(p.val)
	case "title":
		e.Title, err = readText(p.val, p.key, maxTitleText)
	case "by":
		e.By, err = readBy(p.val, p.key)
	case "used":
		e.Used, err = readUsed(p.val)
	default:
		e.extra += renderPair(p, 2)
	}
	return err
}

func readHash(v value, what string) (node.Hash, error) {
	h := node.Hash(v.text)
	if !h.Valid() {
		return "", newMalformedError(v.line, "%s: %.40q is no hash", what, v.text)
	}
	return h, nil
}

func readText(v value, what string, maxLen int) (string, error) {
	switch {
	case v.kind != scalar:
		return "", newMalformedError(v.line, "%s is no text", what)
	case len(v.text) > maxLen:
		return "", newMalformedError(v.line, "%s: %d bytes, more than %d", what, len(v.text), maxLen)
	}
	return v.text, nil
}

func readInt(v value, what string, most int64) (int64, error) {
	n, _ := strconv.ParseInt(v.text, 10, 64) // what is no number is written in another way than n
	if v.str || n < 0 || n > most || strconv.FormatInt(n, 10) != v.text {
		return 0, newMalformedError(v.line, "%s: %.40q is no whole number from 0 on", what, v.text)
	}
	return n, nil
}

func readStatus(v value) (Status, error) {
	s := Status(v.text)
	if !s.isKnown() {
		return "", newMalformedError(v.line, "status: %.40q is none of active, suspended, ended", v.text)
	}
	return s, nil
}

func (s Status) isKnown() bool {
	return s == StatusActive || s == StatusSuspended || s == StatusEnded
}

// readFields reads a mapping whose keys are all known.
func readFields(v value, what string, read func(pair) (bool, error)) error {
	if v.kind != mapping {
		return newMalformedError(v.line, "%s is no mapping", what)
	}
	for _, p := range v.pairs {
		if p.val.isNull() {
			continue
		}
		known, err := read(p)
		if err != nil {
			return err
		}
		if !known {
			return newMalformedError(p.val.line, "%s: unknown key %.40q", what, p.key)
		}
	}
	return nil
}

func readWork(v value) (Work, error) {
	var w Work
	err := readFields(v, "work", func(p pair) (ok bool, err error) {
		switch p.key {
		case "branch":
			if w.Branch, err = readText(p.val, "work.branch", maxBranch); err == nil && !branchOK(w.Branch) {
				err = newMalformedError(p.val.line, "work.branch: %.60q is no branch name", w.Branch)
			}
		case "commit":
			if w.Commit, err = readText(p.val, "work.commit", 40); err == nil && !commitOK(w.Commit) {
				err = newMalformedError(p.val.line, "work.commit: %.60q is no commit id", w.Commit)
			}
		default:
			return false, nil
		}
		return true, err
	})
	return w, err
}

const maxBranch = 250

// branchOK is git's rule for a branch name (check-ref-format), so that a name
// from a hostile file can't reach into another folder of refs.
func branchOK(s string) bool {
	if s == "" || len(s) > maxBranch || s[0] == '-' || strings.HasSuffix(s, ".") || s == "@" || !utf8.ValidString(s) ||
		strings.Contains(s, "..") || strings.Contains(s, "@{") || strings.ContainsAny(s, " ~^:?*[\\\x7f") {
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' {
			return false
		}
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}

func commitOK(s string) bool {
	if len(s) != 40 {
		return false
	}
	return strings.Trim(s, "0123456789abcdef") == ""
}

func readNext(v value) (*Next, bool, error) {
	if v.kind == scalar {
		if v.text != "deliver" {
			return nil, false, newMalformedError(v.line, "next: %.40q is neither deliver nor a mapping", v.text)
		}
		return nil, true, nil
	}
	var n Next
	err := readFields(v, "next", func(p pair) (ok bool, err error) {
		switch p.key {
		case "role":
			n.Role, err = readText(p.val, "next.role", maxRoleText)
		case "since":
			n.Since, err = readInt(p.val, "next.since", math.MaxInt64)
		case "answer":
			n.Answer, err = readHash(p.val, "next.answer")
		case "poked":
			n.Poked, err = readHash(p.val, "next.poked")
		case "forgiven":
			var f int64
			f, err = readInt(p.val, "next.forgiven", math.MaxInt32)
			n.Forgiven = int(f)
		case "by":
			n.By, err = readBy(p.val, "next.by")
		default:
			return false, nil
		}
		return true, err
	})
	return &n, false, err
}

func readSuspended(v value) (*Suspended, error) {
	var s Suspended
	err := readFields(v, "suspended", func(p pair) (ok bool, err error) {
		switch p.key {
		case "role":
			s.Role, err = readText(p.val, "suspended.role", maxRoleText)
		case "reason":
			s.Reason, err = readText(p.val, "suspended.reason", maxReasonText)
		case "by":
			s.By, err = readBy(p.val, "suspended.by")
		default:
			return false, nil
		}
		return true, err
	})
	return &s, err
}

func readPause(v value) (*Pause, error) {
	var s Pause
	err := readFields(v, "pause", func(p pair) (ok bool, err error) {
		switch p.key {
		case "reason":
			s.Reason, err = readText(p.val, "pause.reason", maxReasonText)
		case "by":
			s.By, err = readBy(p.val, "pause.by")
		default:
			return false, nil
		}
		return true, err
	})
	return &s, err
}

func readAttempts(v value) ([]string, error) {
	if v.kind != sequence || len(v.items) > maxAttempts {
		return nil, newMalformedError(v.line, "attempts is no list of at most %d refs", maxAttempts)
	}
	var out []string
	for _, item := range v.items {
		ref, err := readText(item, "attempts", maxBranch)
		if err != nil {
			return nil, err
		}
		if !attemptOK(ref) {
			return nil, newMalformedError(item.line, "attempts: %.60q is no ref below %s", ref, attemptRefs)
		}
		out = append(out, ref)
	}
	return out, nil
}

func attemptOK(ref string) bool {
	rest, ok := strings.CutPrefix(ref, attemptRefs)
	return ok && branchOK(rest)
}

func readLimits(v value) (map[string]float64, error) {
	if v.kind != mapping || len(v.pairs) > maxLimits {
		return nil, newMalformedError(v.line, "limits is no mapping of at most %d numbers", maxLimits)
	}
	if len(v.pairs) == 0 {
		return nil, nil
	}
	out := make(map[string]float64, len(v.pairs))
	for _, p := range v.pairs {
		n, err := strconv.ParseFloat(p.val.text, 64)
		if p.val.str || err != nil || math.IsNaN(n) || math.IsInf(n, 0) || strings.ContainsAny(p.val.text, "xX_") || len(p.key) > maxRoleText {
			return nil, newMalformedError(p.val.line, "limits: %.40q: %.40q is no number", p.key, p.val.text)
		}
		out[p.key] = n
	}
	return out, nil
}

// writeEntry returns the lines of an entry: the short form when nothing but the
// head of an active thread is known. It fills in the status.
func writeEntry(id ThreadID, e *Entry) (string, error) {
	if e.Status == "" {
		e.Status = StatusActive
	}
	if err := e.checkEntry(); err != nil {
		return "", err
	}
	if e.isShort() {
		return writeCode(string(id)) + ": " + writeCode(string(e.Head)) + "\n", nil
	}
	var b strings.Builder
	b.WriteString(writeCode(string(id)) + ":\n")
	line := func(indent, key, val string) { b.WriteString(indent + key + ": " + val + "\n") }
	line("  ", "head", writeCode(string(e.Head)))
	line("  ", "status", string(e.Status))
	if e.Workflow != "" {
		line("  ", "workflow", writeCode(string(e.Workflow)))
	}
	if e.Key != "" {
		line("  ", "key", writeWord(e.Key))
	}
	if e.Work != (Work{}) {
		b.WriteString("  work:\n")
		if e.Work.Branch != "" {
			line("    ", "branch", writeWord(e.Work.Branch))
		}
		if e.Work.Commit != "" {
			line("    ", "commit", writeCode(e.Work.Commit))
		}
	}
	if e.Comment != 0 {
		line("  ", "comment", strconv.FormatInt(e.Comment, 10))
	}
	if e.PR != 0 {
		line("  ", "pr", strconv.Itoa(e.PR))
	}
	e.writeNext(&b, line)
	if e.Suspended != nil {
		b.WriteString("  suspended:\n")
		line("    ", "role", writeWord(e.Suspended.Role))
		line("    ", "reason", writeWord(e.Suspended.Reason))
		writeBy(&b, "    ", e.Suspended.By)
	}
	if e.Pause != nil {
		b.WriteString("  pause:\n")
		line("    ", "reason", writeWord(e.Pause.Reason))
		writeBy(&b, "    ", e.Pause.By)
	}
	e.writeLists(&b, line)
	if e.Title != "" {
		line("  ", "title", writeWord(e.Title))
	}
	writeBy(&b, "  ", e.By)
	e.writeUsed(&b, line)
	b.WriteString(e.extra)
	return b.String(), nil
}

func (e *Entry) writeNext(b *strings.Builder, line func(indent, key, val string)) {
	switch {
	case e.Deliver:
		line("  ", "next", "deliver")
		if e.Since != 0 {
			line("  ", "since", strconv.FormatInt(e.Since, 10))
		}
	case e.Next != nil:
		b.WriteString("  next:\n")
		line("    ", "role", writeWord(e.Next.Role))
		line("    ", "since", strconv.FormatInt(e.Next.Since, 10))
		if e.Next.Answer != "" {
			line("    ", "answer", writeCode(string(e.Next.Answer)))
		}
		if e.Next.Poked != "" {
			line("    ", "poked", writeCode(string(e.Next.Poked)))
		}
		if e.Next.Forgiven != 0 {
			line("    ", "forgiven", strconv.Itoa(e.Next.Forgiven))
		}
		writeBy(b, "    ", e.Next.By)
	}
}

func (e *Entry) writeLists(b *strings.Builder, line func(indent, key, val string)) {
	if len(e.Attempts) > 0 {
		b.WriteString("  attempts:\n")
		for _, a := range e.Attempts {
			b.WriteString("    - " + writeWord(a) + "\n")
		}
	}
	if len(e.Limits) > 0 {
		b.WriteString("  limits:\n")
		keys := make([]string, 0, len(e.Limits))
		for k := range e.Limits {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			line("    ", writeWord(k), strconv.FormatFloat(e.Limits[k], 'f', -1, 64))
		}
	}
}

func (e *Entry) isShort() bool {
	return e.Status == StatusActive && e.Workflow == "" && e.Key == "" && e.Work == (Work{}) && e.Comment == 0 && e.PR == 0 &&
		e.Next == nil && !e.Deliver && e.Suspended == nil && e.Pause == nil && len(e.Attempts) == 0 && len(e.Limits) == 0 &&
		e.Title == "" && e.By == nil && e.Used.Head != e.Head && e.extra == ""
}

// checkEntry refuses an entry that could not be read back as it is.
func (e *Entry) checkEntry() error {
	bad := func(what string, v any) error {
		return fmt.Errorf("%w: %s: %.60q", ErrUnstorable, what, fmt.Sprint(v))
	}
	switch {
	case !e.Head.Valid():
		return bad("head", e.Head)
	case !e.Status.isKnown():
		return bad("status", e.Status)
	case e.Workflow != "" && !e.Workflow.Valid():
		return bad("workflow", e.Workflow)
	case !textOK(e.Key, maxKeyText):
		return bad("key", e.Key)
	case e.Work.Branch != "" && !branchOK(e.Work.Branch):
		return bad("work.branch", e.Work.Branch)
	case e.Work.Commit != "" && !commitOK(e.Work.Commit):
		return bad("work.commit", e.Work.Commit)
	case !textOK(e.Title, maxTitleText):
		return bad("title", e.Title)
	case !e.hasStorablePeople():
		return bad("by", "of the entry, or of what stands in it")
	case !e.Used.isValid():
		return bad("used", e.Used)
	case e.Comment < 0 || e.PR < 0 || e.PR > math.MaxInt32:
		return bad("comment or pr", fmt.Sprint(e.Comment, e.PR))
	case e.Deliver && e.Next != nil:
		return bad("next", "both a role and deliver")
	case e.Since < 0:
		return bad("since", e.Since)
	case e.Next != nil && (!textOK(e.Next.Role, maxRoleText) || e.Next.Since < 0 || e.Next.Forgiven < 0 || e.Next.Forgiven > math.MaxInt32 || e.Next.Answer != "" && !e.Next.Answer.Valid() || e.Next.Poked != "" && !e.Next.Poked.Valid()):
		return bad("next", *e.Next)
	case e.Suspended != nil && (!textOK(e.Suspended.Role, maxRoleText) || !textOK(e.Suspended.Reason, maxReasonText)):
		return bad("suspended", *e.Suspended)
	case e.Pause != nil && !textOK(e.Pause.Reason, maxReasonText):
		return bad("pause", *e.Pause)
	case len(e.Attempts) > maxAttempts || slices.ContainsFunc(e.Attempts, func(a string) bool { return !attemptOK(a) }):
		return bad("attempts", e.Attempts)
	}
	for k, n := range e.Limits {
		if !textOK(k, maxRoleText) || math.IsNaN(n) || math.IsInf(n, 0) || len(e.Limits) > maxLimits {
			return bad("limits", e.Limits)
		}
	}
	return nil
}

// hasStorablePeople reports whether all who are named can be read back.
func (e *Entry) hasStorablePeople() bool {
	all := []*By{e.By}
	if e.Next != nil {
		all = append(all, e.Next.By)
	}
	if e.Suspended != nil {
		all = append(all, e.Suspended.By)
	}
	if e.Pause != nil {
		all = append(all, e.Pause.By)
	}
	return areStorable(all...)
}

func textOK(s string, maxLen int) bool { return len(s) <= maxLen && utf8.ValidString(s) }

// renderPair writes a key that this version doesn't know as it was meant, in our own
// layout.
func renderPair(p pair, indent int) string {
	var b strings.Builder
	pad := strings.Repeat(" ", indent)
	b.WriteString(pad + writeWord(p.key) + ":")
	renderValue(&b, p.val, indent)
	return b.String()
}

func renderValue(b *strings.Builder, v value, indent int) {
	switch {
	case v.kind == scalar:
		b.WriteString(" " + v.scalarText() + "\n")
	case v.kind == mapping && len(v.pairs) == 0:
		b.WriteString(" {}\n")
	case v.kind == sequence && len(v.items) == 0:
		b.WriteString(" []\n")
	case v.kind == mapping:
		b.WriteByte('\n')
		for _, p := range v.pairs {
			b.WriteString(renderPair(p, indent+2))
		}
	default:
		b.WriteByte('\n')
		for _, item := range v.items {
			renderItem(b, item, indent+2)
		}
	}
}

func renderItem(b *strings.Builder, v value, indent int) {
	pad := strings.Repeat(" ", indent)
	if v.kind == mapping && len(v.pairs) > 0 {
		var inner strings.Builder
		for _, p := range v.pairs {
			inner.WriteString(renderPair(p, indent+2))
		}
		b.WriteString(pad + "- " + strings.TrimLeft(inner.String(), " "))
		return
	}
	b.WriteString(pad + "-")
	renderValue(b, v, indent)
}

// scalarText writes a scalar so that it is read as the same: text quoted, what
// may be a number or a truth value as it stood.
func (v value) scalarText() string {
	switch {
	case v.str:
		return quoteText(v.text)
	case v.text == "":
		return "null"
	}
	return v.text
}
