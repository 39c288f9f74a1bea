package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/graph"
	"github.com/united-workforce/uwf/engine/runner/sanitize"
	"github.com/united-workforce/uwf/gitcas/layout"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/markdown"
	"github.com/united-workforce/uwf/internal/text"
)

// MaxComment is the longest comment and body of a pull request, in bytes. Forges
// take 65,536 characters; some count bytes, some UTF-16.
const MaxComment = 65_000

// Comment is the sticky comment of a thread: Marker, one sentence on what is going
// on, what a person has to do or know now, the graph with the way taken, the steps,
// what they cost, and how to steer. It is at most MaxComment bytes, however long the
// thread is: the oldest steps go first, then the graph, then texts.
func Comment(t Thread) string {
	p := newPage(t)
	p.text, p.graph, p.all = 10_000, 12_000, MaxComment
	return Marker(t.ID) + "\n" + p.renderPage(p.writeResult(6_000), p.writeLastOutput())
}

// renderPage is the page; result is what came out of it, said what is put below.
func (p page) renderPage(result, said string) string {
	head := joinBlocks(p.chooseIcon()+" "+writeSentence(p.Thread, boldName), p.earlierPull(), p.writeQuestion(), p.writeFailure(), p.lostJob(), sanitize.Outgoing(p.Why, "> ", 2_000), p.writePrevented(), result, p.writeUnproven(4_000), p.drawGraph())
	foot := joinBlocks(p.writeChecks(), p.writeNotes(), p.writeUsage(), said, p.whoDecided(), p.writeSteering(false), p.writeFooter())
	return joinBlocks(head, p.writeSteps(p.all-len(head)-len(foot)-200), foot) + "\n"
}

// writeQuestion is the question that a person has to answer, and how.
func (p page) writeQuestion() string {
	if p.State != Waiting && p.State != Limited {
		return ""
	}
	question := sanitize.Outgoing(p.Question, "> ", p.text)
	switch {
	case p.State == Limited:
		return joinBlocks(question, p.writeRaise())
	case !p.Asks:
		return joinBlocks(question, "Let it go on:", p.writeCommand("resume", ""))
	}
	if p.Role == "" && p.State == Waiting { // nobody asks anything
		return joinBlocks(question, "To let it go on:", p.writeCommand("resume", ""))
	}
	where, answer := "Answer in a comment that begins like this:", "Your answer, in as many lines as you like."
	if p.console {
		where, answer = "Answer in a clone of the repository:", "Your answer"
	}
	return joinBlocks(question, where, p.writeCommand("resume", answer))
}

// earlierPull names what an earlier thread about the same issue led to: it is not closed.
func (p page) earlierPull() string {
	if p.Former <= 0 {
		return ""
	}
	return fmt.Sprintf("This was started over: an earlier thread led to pull request #%d, which stays as it is.", p.Former)
}

// lostJob says what brings another job.
func (p page) lostJob() string {
	if p.State != Lost || p.Lost.Again {
		return ""
	}
	return joinBlocks("The schedule, or the next job of this repository, starts another one. To have it at once:", p.writeCommand("retry", ""))
}

// writeFailure is what happened, what was tried, where the work is, what to do now.
func (p page) writeFailure() string {
	switch {
	case p.Failure == nil:
		return ""
	case p.State == Damaged:
		return p.damageKnown(*p.Failure)
	case p.State != Failed:
		return ""
	}
	f := *p.Failure
	what, most := f.describePhase(), ""
	if f.Phase == "deliver" && !p.Waits { // the schedule tries again
		most = fmt.Sprintf(" of %d", f.MaxTries)
	}
	switch counted := f.Tries - f.Forgiven; {
	case f.MaxTries <= 0 || counted <= 0 || f.Tries == 1 && most == "":
	case f.Forgiven > 0:
		what = fmt.Sprintf("This was try %d, and try %d%s since a person let it go on. %s", f.Tries, counted, most, what)
	default:
		what = fmt.Sprintf("This was try %d%s. %s", counted, most, what)
	}
	verb, lead := "retry", "Have it tried again:"
	switch {
	case strings.Contains(f.Advice, "/uwf resume"):
		verb, lead = "resume", ""
	case strings.Contains(f.Advice, "/uwf retry"):
		lead = ""
	}
	return joinBlocks(what, p.embedPrinted(f.Message, p.text/2), sanitize.Outgoing(f.Advice, "", 2_000), lead, p.writeCommand(verb, ""), p.writeKeptWork(f))
}

// phases say what part of a step failed.
var phases = map[string]string{
	"prepare":     "Its workspace could not be prepared.",
	"workspace":   "Its working folder could not be prepared, or its changes could not be kept.",
	"agent":       "The agent's program failed.",
	"checks":      "Its work does not pass its checks.",
	"extract":     "What it answered is not in the form that the workflow asks for.",
	"seal":        "What it put out could not be accepted.",
	"commit":      "Its result could not be stored.",
	"interrupted": "Its job was ended before it was done.",
}

// describePhase says it of this failure.
func (f Failure) describePhase() string {
	known := "This is what is known:"
	if f.ByForge {
		known = "This is what the forge said:"
	}
	return cmp.Or(phases[f.Phase], known)
}

// isUnread: nothing could be read of the thread.
func (p page) isUnread() bool { return p.State == Damaged && p.Workflow == "" }

// damageKnown is what is wrong with the state branch, and how it is mended.
func (p page) damageKnown(f Failure) string {
	mend := Mending(f.Mend)
	if mend == "" {
		mend = "`uwf fsck` in a clone of the repository says what else is wrong."
	}
	return joinBlocks("This is what is known:", p.embedPrinted(f.Message, p.text/2), mend, "Then:", p.writeCommand("retry", ""))
}

// aCommand is a mend that is a command: what it does, a colon, and what to type.
var aCommand = lazyregexp.New(`^([^:]+): ((?:git|uwf) .+)$`)

// Mending are ways to mend a store, as Failure has them, in Markdown: each is a sentence
// and what to type.
func Mending(s string) string {
	var ways []string
	for way := range strings.SplitSeq(s, "; ") {
		way = strings.TrimSpace(way)
		if found := aCommand.FindStringSubmatch(way); found != nil {
			ways = append(ways, upperFirst(found[1])+":", markdown.Fence(found[2], "sh"))
		} else if way != "" {
			ways = append(ways, upperFirst(markdown.Escape(way))+".")
		}
	}
	return joinBlocks(ways...)
}

// writeKeptWork says where the work of a failed step is.
func (p page) writeKeptWork(f Failure) string {
	before := ""
	if b := p.linkBranch(); b != "" && len(p.listCommits()) > 0 {
		before = "The work of the steps before it is on " + b + "."
	}
	ref := strings.TrimPrefix(f.Attempt, "refs/")
	if f.Attempt == "" || !safeRef(ref) {
		return before
	}
	return joinBlocks(strings.TrimSpace(before+" What it had done itself is kept, too:"), markdown.Fence("git fetch origin refs/"+ref+" && git show FETCH_HEAD", "sh"))
}

// safeRef reports a name that a shell takes as it stands.
func safeRef(s string) bool {
	return s != "" && len(s) <= 300 && s[0] != '-' && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("/._-", r))
	})
}

// writePrevented says why there is no pull request, and how to open one.
func (p page) writePrevented() string {
	if p.State != Delivered || p.Prevented == "" {
		return ""
	}
	open := ""
	if markdown.IsAddress(p.Links.Compare) {
		open = "**[Open the pull request](" + p.Links.Compare + ")** – the changes are on " + p.linkBranch() + "."
	} else if b := p.linkBranch(); b != "" {
		open = "The changes are on " + b + "."
	}
	return joinBlocks(sanitize.Outgoing(p.Prevented, "> ", 2_000), open)
}

// drawGraph is the graph with the way taken and the place where the thread stands.
func (p page) drawGraph() string {
	if p.Definition == nil || p.graph <= 0 {
		return ""
	}
	g := graph.Of(p.Definition)
	g.Mark(p.Definition, p.Past)
	// That the thread was somewhere once is what the colours say.
	m := strings.NewReplacer(` #215;1"`, `"`, `|"#215;1"|`, "").Replace(g.Mermaid(p.graph))
	if len(g.Nodes) <= wide {
		m = strings.Replace(m, "flowchart TD", "flowchart LR", 1)
	}
	return markdown.Fence(m, "mermaid")
}

// wide is how many nodes fit beside each other on a forge's page; a larger graph
// goes down.
const wide = 8

// writeUsage is what the thread used of its limits, on one line. Only one dollar sign
// stands in it: between two of them forges see a formula.
func (p page) writeUsage() string {
	if p.isUnread() {
		return ""
	}
	n := p.nextStep() - 1
	parts := []string{text.Plural(n, "step")}
	if p.MaxSteps > 0 {
		parts[0] = fmt.Sprintf("%d of %d steps", n, p.MaxSteps)
	}
	var all time.Duration
	for _, s := range p.Steps {
		all += max(s.Took, 0)
	}
	if all > 0 {
		parts = append(parts, formatDuration(all))
	}
	if p.Tokens > 0 || p.MaxTokens > 0 {
		tokens := formatAmount(p.Tokens)
		if p.MaxTokens > 0 {
			tokens += " of " + formatAmount(p.MaxTokens)
		}
		parts = append(parts, tokens+" tokens")
	}
	if p.CostUSD > 0 || p.MaxCostUSD > 0 || p.Unpriced {
		cost := formatPrice(p.CostUSD, p.Unpriced)
		if p.MaxCostUSD > 0 {
			cost += " of " + formatDollars(p.MaxCostUSD)
		}
		parts = append(parts, cost)
	}
	return strings.Join(parts, " · ")
}

// writeFooter says whose page this is and where the rest can be read.
func (p page) writeFooter() string {
	parts := []string{plainLabel(p.Workflow), markdown.Link("`"+bareWord(p.ID)+"`", p.linkLog())}
	if p.isUnread() {
		parts = parts[1:]
	}
	if markdown.IsAddress(p.Links.Run) {
		parts = append(parts, markdown.Link("job", p.Links.Run))
	}
	if b := p.linkBranch(); b != "" && len(p.listCommits()) > 0 {
		parts = append(parts, b)
	}
	if p.Pull != nil && p.Pull.Number > 0 {
		parts = append(parts, fmt.Sprintf("#%d", p.Pull.Number))
	}
	return "<sub>" + strings.Join(parts, " · ") + "</sub>"
}

// linkLog is where the thread's commits are listed.
func (p page) linkLog() string {
	if p.Links.StateBranch == "" || bareWord(p.ID) == "" {
		return ""
	}
	return p.Links.LogURL(p.Links.StateBranch, layout.ThreadPath(layout.ThreadID(bareWord(p.ID))))
}

// linkBranch is the work branch as a link.
func (p page) linkBranch() string {
	b := p.Links.WorkBranch
	if b == "" || len(b) > 250 {
		return ""
	}
	shown := b
	if !safeRef(b) {
		shown = cleanName(b)
	}
	return markdown.Link(codeSpan(shown), p.Links.BranchURL(b))
}

// listCommits are those of the steps.
func (p page) listCommits() []string {
	var out []string
	for _, s := range p.Steps {
		if s.Commit != "" {
			out = append(out, s.Commit)
		}
	}
	return out
}

// page is what is written about one thread.
type page struct {
	Thread
	// most bytes of a text in full, of the graph, and of everything.
	text, graph, all int
	// console: there is nowhere to comment, so commands are those of a terminal.
	console bool
}

func newPage(t Thread) page {
	return page{Thread: t, console: t.Subject <= 0}
}

// joinBlocks puts the blocks that aren't empty below each other.
func joinBlocks(blocks ...string) string {
	blocks = lists.Map(blocks, func(b string) string { return strings.Trim(b, "\n") })
	return strings.Join(lists.Filter(blocks, func(b string) bool { return b != "" }), "\n\n")
}

// foldBlock is a block that a click opens. The title is HTML.
func foldBlock(title, content string) string {
	if content == "" {
		return ""
	}
	return "<details><summary>" + title + "</summary>\n\n" + content + "\n\n</details>"
}

// MaxSummary is the longest summary of a job, in bytes. GitHub takes 1 MiB a step.
const MaxSummary = 1_000_000

// Summary is the job's summary: what Comment shows, and the last output in full. It
// is at most MaxSummary bytes, and no marker is in it.
func Summary(t Thread) string {
	p := newPage(t)
	p.text, p.graph, p.all = 50_000, 20_000, 300_000
	last := ""
	if t.Last != nil {
		last = joinBlocks("### What "+escapeName(cleanName(t.Last.Role))+" put out", p.writeVerdict(*t.Last), p.writeOutput(*t.Last, 600_000))
	}
	return p.renderPage("", last)
}
