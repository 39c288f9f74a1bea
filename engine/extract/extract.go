// Package extract reads the structured part of what a model wrote: the
// frontmatter (YAML or JSON) above the Markdown of its answer. It is pure: it
// never does I/O, never calls a model and never guesses. What it can't read is an
// error that names the reason; Complaint turns that error into the message that
// asks the agent to answer again.
package extract

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/workflow"
	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/internal/text"
)

// Limits of what is read. Larger input is refused, never cut.
const (
	MaxText  = 4 << 20   // bytes of one answer
	MaxBlock = 256 << 10 // bytes of the frontmatter alone
)

// The reasons why an answer gives no output. Every error of Frontmatter wraps
// exactly one of them.
var (
	// ErrMissing: there is no frontmatter, or none that has a field of the schema.
	ErrMissing = errors.New("no frontmatter")
	// ErrUnclosed: the frontmatter has no closing line; the answer may be cut off.
	ErrUnclosed = errors.New("frontmatter is not closed")
	// ErrSyntax: the frontmatter is neither YAML nor JSON that can be read one way.
	ErrSyntax = errors.New("frontmatter can't be read")
	// ErrInvalid: the fields don't fit the schema.
	ErrInvalid = errors.New("fields don't fit the schema")
	// ErrTooLarge: the answer or its frontmatter is over the limit.
	ErrTooLarge = errors.New("answer is too large")
	// ErrStatus: the status is one that the workflow has no edge for.
	ErrStatus = errors.New("status is not allowed")
	// ErrSchema: the schema itself is unusable. No correction helps.
	ErrSchema = errors.New("output schema is unusable")
)

// Result is what an answer holds.
type Result struct {
	// Output has the schema's fields, coerced and validated: nil, bool, string,
	// int64, float64, []any and map[string]any.
	Output map[string]any
	// Body is the Markdown under the frontmatter, with \n line ends and without
	// blank lines at either end. Where nothing stands under it, it is the text
	// above it.
	Body string
	// Status is Output's "$status", or "status" where the schema has no "$status";
	// empty when there is neither, or it is "_", which means none.
	Status string
}

// OutputError says why an answer gave no output, and where.
type OutputError struct {
	Reason   error          // one of the sentinels above
	Line     int            // line of the answer, from 1; 0: the answer as a whole
	Detail   string         // what is wrong there, for a person or a model
	Problems []node.Problem // the schema's complaints, where Reason is ErrInvalid
	ours     bool           // the block is certainly meant as the frontmatter
}

func (e *OutputError) Error() string {
	return strings.Join(append([]string{"read the answer: " + e.describeReason()}, e.listProblems()...), "; ")
}

// Unwrap gives the sentinel.
func (e *OutputError) Unwrap() error { return e.Reason }

// Frontmatter reads the fields above the Markdown of an answer, fits them to the
// schema of the role's output and checks them against it.
//
// The opening "---" may follow a byte order mark, blank lines or prose, and be indented;
// the next "---" that stands alone on its line, as far to the right as the fields,
// closes. Of several such blocks the first
// one that names a field of the schema counts, so that a rule in prose is none. In
// place of YAML there may be a JSON object; the block may stand in a code fence, be
// one (```yaml, ```json), or the answer may begin with a JSON object.
//
// What a model thinks aloud (<think> and the like) is no part of its answer. A
// block that opens the answer counts whatever follows; where prose comes first, a
// later block with another status is an error, for one of them may be a draft.
// Names of fields may differ from the schema's in case and signs ("status" for
// "$status") where nothing else can be meant, and have quotes or stars around them.
//
// Scalars are read as YAML 1.2 does: yes, no, on, off and dates are text, 0777 is
// 777. Where the schema leaves text one reading, it gets it: 12 is text where only
// text fits, "12" a number where only a number does. Only the schema's properties
// are taken, unless it has none. Every error is an *OutputError.
func Frontmatter(text string, schema any) (Result, error) {
	s, err := compileSchema(schema)
	if err != nil {
		return Result{}, err
	}
	if len(text) > MaxText {
		return Result{}, &OutputError{Reason: ErrTooLarge, Detail: fmt.Sprintf("it has %d bytes, the limit is %d", len(text), MaxText)}
	}
	b, fault := s.findEither(cleanText(text))
	if fault != nil {
		return Result{}, fault
	}
	s.renameKeys(b.fields)
	if lost := findLost(b.fields, s.root); lost != nil {
		return Result{}, &OutputError{Reason: ErrSyntax, Line: b.line + lost.Pos.Line - 1, Detail: fmt.Sprintf("%.80q belongs to no field: put text that has a comma in quotes", lost.Key)}
	}
	output, _ := s.fitObject(b.fields, s.root).(map[string]any)
	if err := s.validateOutput(output, b.line); err != nil {
		return Result{}, err
	}
	body := trimBlank(b.after)
	if body == "" {
		body = trimBlank(b.before)
	}
	return Result{Output: output, Body: body, Status: workflow.StatusIn(output, s.statusKey())}, nil
}

// findEither looks for the frontmatter by the exact names of fields, and where there is
// none, by names that differ in case and signs ("status" for "$status").
func (s *outputSchema) findEither(text string) (*block, *OutputError) {
	b, err := findBlock(text, s)
	if err == nil || !errors.Is(err, ErrMissing) {
		return b, err
	}
	loose := *s
	loose.loose = true
	return findBlock(text, &loose)
}

// CheckStatus is ErrStatus when a status is none of those that the workflow has an
// edge for.
func CheckStatus(status string, allowed []string) error {
	if slices.Contains(allowed, status) {
		return nil
	}
	detail := fmt.Sprintf("%q has no edge in the workflow", text.Cut(status, 80))
	if status == "" {
		detail = "there is none"
	}
	return &OutputError{Reason: ErrStatus, Detail: detail}
}

// cleanText brings an answer to one form: no byte order mark, \n line ends, valid
// UTF-8.
func cleanText(text string) string {
	text = strings.TrimPrefix(text, "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if !strings.Contains(text, "\n") { // line ends of a Mac of the last century
		text = strings.ReplaceAll(text, "\r", "\n")
	}
	return strings.ToValidUTF8(text, "\ufffd")
}

// trimBlank drops blank lines at either end and space behind the last line.
func trimBlank(s string) string {
	s = strings.TrimRight(s, " \t\r\n")
	for {
		line, rest, more := strings.Cut(s, "\n")
		if !more || strings.TrimSpace(line) != "" {
			return s
		}
		s = rest
	}
}
