package statefile

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/gitcas/node"
)

// MaxThreadsFile is the largest threads.yaml that is read, in bytes: some 20,000
// active threads.
const MaxThreadsFile = 8 << 20

// Limits on what an entry holds: text that people or agents chose is short.
const (
	maxKeyText    = 1000
	maxTitleText  = 1000
	maxRoleText   = 200
	maxReasonText = 16 << 10
	maxAttempts   = 1000
	maxLimits     = 50
	maxBranch     = 250
)

// Threads is the content of threads.yaml.
type Threads = File[ThreadID, Entry]

var threadsKind = &fileKind[ThreadID, Entry]{
	maxBytes: MaxThreadsFile,
	checkKey: ThreadID.Check, writeKey: writeCode, fields: entryFields, brief: "  status: active\n", keepUnknown: true,
	settle: (*Entry).settle, clone: Entry.cloneEntry,
}

// NewThreads returns a file without entries.
func NewThreads() *Threads { return &Threads{is: threadsKind} }

// ParseThreads reads threads.yaml. Every entry is checked; the error names the
// line and matches ErrMalformed.
func ParseThreads(data []byte) (*Threads, error) { return threadsKind.parseFile(data) }

// settle leaves out what does not hold for the head.
func (e *Entry) settle() {
	if e.Status == "" {
		e.Status = StatusActive
	}
	if !e.Deliver {
		e.Since = 0
	}
	if _, known := e.Known(); !known {
		e.Used = Used{}
	}
	if len(e.Attempts) == 0 {
		e.Attempts = nil
	}
	if len(e.Limits) == 0 {
		e.Limits = nil
	}
}

// cloneEntry copies what the entry points to.
func (e Entry) cloneEntry() Entry {
	e.Next, e.Suspended, e.Pause = clonePointer(e.Next), clonePointer(e.Suspended), clonePointer(e.Pause)
	e.Attempts, e.Limits = slices.Clone(e.Attempts), maps.Clone(e.Limits)
	return e
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

var entryFields = fields[Entry]{
	scalarField("head", func(e *Entry) *node.Hash { return &e.Head }, readHash, writeHash),
	scalarField("status", func(e *Entry) *Status { return &e.Status }, readStatus, func(s Status) string { return string(s) }),
	scalarField("workflow", func(e *Entry) *node.Hash { return &e.Workflow }, readHash, writeHash),
	scalarField("key", func(e *Entry) *string { return &e.Key }, textUpTo(maxKeyText), writeText),
	blockField("work", func(e *Entry) *Work { return &e.Work }, fields[Work]{
		scalarField("work.branch", func(w *Work) *string { return &w.Branch }, textThat(maxBranch, branchOK, "branch name"), writeText),
		scalarField("work.commit", func(w *Work) *string { return &w.Commit }, textThat(40, commitOK, "commit id"), writeCommit),
	}),
	scalarField("comment", func(e *Entry) *int64 { return &e.Comment }, numberUpTo[int64](math.MaxInt64), writeNonzero),
	scalarField("pr", func(e *Entry) *int { return &e.PR }, numberUpTo(math.MaxInt32), writeNonzero),
	nextField(),
	scalarField("since", func(e *Entry) *int64 { return &e.Since }, numberUpTo[int64](math.MaxInt64), writeNonzero),
	scalarField("released", func(e *Entry) *int64 { return &e.Released }, numberUpTo[int64](math.MaxInt64), writeNonzero),
	optionalField("suspended", func(e *Entry) **Suspended { return &e.Suspended }, fields[Suspended]{
		scalarField("suspended.role", func(s *Suspended) *string { return &s.Role }, textUpTo(maxRoleText), writeWord),
		scalarField("suspended.reason", func(s *Suspended) *string { return &s.Reason }, textUpTo(maxReasonText), writeWord),
		byField("suspended.by", func(s *Suspended) **By { return &s.By }),
	}),
	optionalField("pause", func(e *Entry) **Pause { return &e.Pause }, fields[Pause]{
		scalarField("pause.reason", func(p *Pause) *string { return &p.Reason }, textUpTo(maxReasonText), writeWord),
		byField("pause.by", func(p *Pause) **By { return &p.By }),
	}),
	listField("attempts", func(e *Entry) *[]string { return &e.Attempts }, maxAttempts, "refs",
		textThat(maxBranch, attemptOK, "ref below "+layout.Attempts), func(ref *string, _ string) string { return writeWord(*ref) + "\n" }),
	{"limits", readLimits, writeLimits},
	scalarField("title", func(e *Entry) *string { return &e.Title }, textUpTo(maxTitleText), writeText),
	byField("by", func(e *Entry) **By { return &e.By }),
	blockField("used", func(e *Entry) *Used { return &e.Used }, fields[Used]{
		scalarField("used.head", func(u *Used) *node.Hash { return &u.Head }, readHash, writeHash),
		scalarField("used.steps", func(u *Used) *int { return &u.Steps }, numberUpTo(math.MaxInt32), writeNumber),
		scalarField("used.tokens", func(u *Used) *int64 { return &u.Tokens }, numberUpTo[int64](math.MaxInt64), writeNumber),
		scalarField("used.durationMs", func(u *Used) *int64 { return &u.DurationMs }, numberUpTo[int64](math.MaxInt64), writeNumber),
		scalarField("used.costUsd", func(u *Used) *float64 { return &u.CostUSD }, readAmount, writeAmount),
		scalarField("used.unpriced", func(u *Used) *bool { return &u.Unpriced }, readTrue, writeTrue),
	}),
	blockField("spent", func(e *Entry) *Spent { return &e.Spent }, fields[Spent]{
		scalarField("spent.month", func(s *Spent) *string { return &s.Month }, textThat(len("2026-11"), monthOK, "month"), writeText),
		scalarField("spent.tokens", func(s *Spent) *int64 { return &s.Tokens }, numberUpTo[int64](math.MaxInt64), writeNonzero),
		scalarField("spent.costUsd", func(s *Spent) *float64 { return &s.CostUSD }, readAmount, writeAmount),
		scalarField("spent.tokensBefore", func(s *Spent) *int64 { return &s.TokensBefore }, numberUpTo[int64](math.MaxInt64), writeNonzero),
		scalarField("spent.costBefore", func(s *Spent) *float64 { return &s.CostBefore }, readAmount, writeAmount),
	}),
}

// nextField is whose turn it is: a role, or the delivery.
func nextField() field[Entry] {
	role := optionalField("next", func(e *Entry) **Next { return &e.Next }, fields[Next]{
		scalarField("next.role", func(n *Next) *string { return &n.Role }, textUpTo(maxRoleText), writeWord),
		scalarField("next.since", func(n *Next) *int64 { return &n.Since }, numberUpTo[int64](math.MaxInt64), writeNumber),
		scalarField("next.answer", func(n *Next) *node.Hash { return &n.Answer }, readHash, writeHash),
		scalarField("next.poked", func(n *Next) *node.Hash { return &n.Poked }, readHash, writeHash),
		scalarField("next.forgiven", func(n *Next) *int { return &n.Forgiven }, numberUpTo(math.MaxInt32), writeNonzero),
		byField("next.by", func(n *Next) **By { return &n.By }),
	})
	return field[Entry]{"next", func(e *Entry, v value) error {
		if v.kind != scalar {
			return role.read(e, v)
		}
		if e.Deliver = v.text == "deliver"; !e.Deliver {
			return newMalformedError(v.line, "next: %.40q is neither deliver nor a mapping", v.text)
		}
		return nil
	}, func(e *Entry, indent string) string {
		if e.Deliver {
			return " deliver\n"
		}
		return role.write(e, indent)
	}}
}

// byField is who did something, see record.By.
func byField[T any](name string, at func(*T) **By) field[T] {
	f := optionalField(name, at, fields[By]{
		scalarField(name+".kind", func(b *By) *string { return &b.Kind }, textUpTo(maxRoleText), writeText),
		scalarField(name+".login", func(b *By) *string { return &b.Login }, textUpTo(maxKeyText), writeText),
		scalarField(name+".url", func(b *By) *string { return &b.URL }, textUpTo(maxReasonText), writeText),
		scalarField(name+".name", func(b *By) *string { return &b.Name }, textUpTo(maxKeyText), writeText),
		scalarField(name+".id", func(b *By) *int64 { return &b.ID }, numberUpTo[int64](math.MaxInt64), writeNonzero),
	})
	readKeys := f.read
	f.read = func(t *T, v value) error {
		if err := readKeys(t, v); err != nil {
			return err
		}
		if err := (*at(t)).Validate(); err != nil {
			return newMalformedError(v.line, "%s: %v", name, err)
		}
		return nil
	}
	return f
}

func readStatus(v value, name string) (Status, error) {
	s := Status(v.text)
	if s != StatusActive && s != StatusSuspended && s != StatusEnded {
		return "", newMalformedError(v.line, "%s: %.40q is none of active, suspended, ended", name, v.text)
	}
	return s, nil
}

// branchOK is git's rule for a branch name (check-ref-format), so that a name
// from a hostile file can't reach into another folder of refs.
func branchOK(s string) bool {
	if s == "" || len(s) > maxBranch || s[0] == '-' || strings.HasSuffix(s, ".") || s == "@" || !utf8.ValidString(s) ||
		strings.Contains(s, "..") || strings.Contains(s, "@{") || strings.ContainsAny(s, " ~^:?*[\\\x7f") ||
		strings.ContainsFunc(s, func(r rune) bool { return r < ' ' }) {
		return false
	}
	return !slices.ContainsFunc(strings.Split(s, "/"), func(part string) bool {
		return part == "" || part[0] == '.' || strings.HasSuffix(part, ".lock")
	})
}

func commitOK(s string) bool { return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == "" }

func writeCommit(s string) string { return writeOptional(s, writeCode) }

// monthOK is a month as it is written: 2026-11.
func monthOK(s string) bool {
	_, err := time.Parse("2006-01", s)
	return err == nil
}

func attemptOK(ref string) bool {
	rest, ok := strings.CutPrefix(ref, layout.Attempts)
	return ok && branchOK(rest)
}

func readLimits(e *Entry, v value) error {
	if v.kind != mapping || len(v.pairs) > maxLimits {
		return newMalformedError(v.line, "limits is no mapping of at most %d numbers", maxLimits)
	}
	e.Limits = make(map[string]float64, len(v.pairs))
	for _, p := range v.pairs {
		n, ok := parseFloat(p.val)
		if !ok || len(p.key) > maxRoleText {
			return newMalformedError(p.val.line, "limits: %.40q: %.40q is no number", p.key, p.val.text)
		}
		e.Limits[p.key] = n
	}
	return nil
}

func writeLimits(e *Entry, indent string) string {
	if len(e.Limits) == 0 {
		return ""
	}
	text := "\n"
	for _, k := range slices.Sorted(maps.Keys(e.Limits)) {
		text += indent + "  " + writeWord(k) + ": " + writeFloat(e.Limits[k]) + "\n"
	}
	return text
}

// renderPairs writes keys that this version doesn't know as they were meant, in our own
// layout.
func renderPairs(pairs []pair, indent string) string {
	if len(pairs) == 0 {
		return ""
	}
	var b strings.Builder
	for _, p := range pairs {
		b.WriteString(indent + writeWord(p.key) + ":" + renderValue(p.val, indent))
	}
	return b.String()
}

// renderValue is what stands behind a key that is indented so far.
func renderValue(v value, indent string) string {
	switch {
	case v.kind == scalar:
		return " " + v.scalarText() + "\n"
	case len(v.pairs)+len(v.items) == 0:
		return map[kind]string{mapping: " {}\n", sequence: " []\n"}[v.kind]
	}
	var b strings.Builder
	b.WriteString("\n" + renderPairs(v.pairs, indent+"  "))
	for _, item := range v.items {
		b.WriteString(indent + "  - " + strings.TrimLeft(renderValue(item, indent+"  "), " \n"))
	}
	return b.String()
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
