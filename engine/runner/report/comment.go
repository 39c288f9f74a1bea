package report

import (
	"fmt"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/graph"
	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/markdown"
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
	return Marker(t.ID) + "\n" + p.render(p.result(6_000), p.said())
}

// render is the page; result is what came out of it, said what is put below.
func (p page) render(result, said string) string {
	head := join(icon(p.State)+" "+sentence(p.Thread, bold), p.earlierPull(), p.asked(), p.failed(), p.lostJob(), p.cancelReason(), p.prevented(), result, p.chart())
	foot := join(p.used(), said, p.whoDecided(), p.steer(false), p.footer())
	return join(head, p.steps(p.all-len(head)-len(foot)-200), foot) + "\n"
}

// asked is the question that a person has to answer, and how.
func (p page) asked() string {
	switch p.State {
	case Waiting, Limited:
	default:
		return ""
	}
	question := ""
	if p.Question != "" {
		question = p.markdown(p.Question, "> ", p.text)
	}
	if p.State == Limited {
		return join(question, p.raise())
	}
	if p.console {
		return join(question, "Answer in a clone of the repository:", p.command("resume", "Your answer"))
	}
	return join(question, "Answer in a comment that begins like this:", p.command("resume", "Your answer, in as many lines as you like."))
}

// earlierPull names what an earlier thread about the same issue led to: it is not closed.
func (p page) earlierPull() string {
	if p.Former <= 0 {
		return ""
	}
	return fmt.Sprintf("This was started over: an earlier thread led to pull request #%d, which stays as it is.", p.Former)
}

// cancelReason is what a person said who cancelled the thread.
func (p page) cancelReason() string {
	if p.State != Cancelled || strings.TrimSpace(p.Why) == "" {
		return ""
	}
	return p.markdown(p.Why, "> ", 2_000)
}

// lostJob says what brings another job.
func (p page) lostJob() string {
	if p.State != Lost || p.Lost.Again {
		return ""
	}
	return join("The schedule, or the next job of this repository, starts another one. To have it at once:", p.command("retry", ""))
}

// failed is what happened, what was tried, where the work is, what to do now.
func (p page) failed() string {
	switch {
	case p.Failure == nil:
		return ""
	case p.State == Damaged:
		return p.damageKnown(*p.Failure)
	case p.State != Failed:
		return ""
	}
	f := *p.Failure
	what := f.phase()
	switch counted := f.Tries - f.Forgiven; {
	case f.MaxTries <= 0 || counted <= 0:
	case f.Forgiven > 0:
		what = fmt.Sprintf("This was try %d, and try %d of %d since a person let it go on. %s", f.Tries, counted, f.MaxTries, what)
	default:
		what = fmt.Sprintf("This was try %d of %d. %s", counted, f.MaxTries, what)
	}
	advice := ""
	if f.Advice != "" {
		advice = p.markdown(f.Advice, "", 2_000)
	}
	verb, lead := "retry", "Have it tried again:"
	switch {
	case strings.Contains(f.Advice, "/uwf resume"):
		verb, lead = "resume", ""
	case strings.Contains(f.Advice, "/uwf retry"):
		lead = ""
	}
	return join(what, p.printed(f.Message, p.text/2), advice, lead, p.command(verb, ""), p.kept(f))
}

// phase says what part of the step failed.
func (f Failure) phase() string {
	switch f.Phase {
	case "workspace":
		return "Its working folder could not be prepared."
	case "agent":
		return "The agent's program failed."
	case "extract":
		return "What it answered is not in the form that the workflow asks for."
	case "seal":
		return "What it put out could not be accepted."
	case "commit":
		return "Its result could not be stored."
	case "interrupted":
		return "Its job was ended before it was done."
	}
	if f.ByForge {
		return "This is what the forge said:"
	}
	return "This is what is known:"
}

// isUnread: nothing could be read of the thread.
func (p page) isUnread() bool { return p.State == Damaged && p.Workflow == "" }

// damageKnown is what is wrong with the state branch, and how it is mended.
func (p page) damageKnown(f Failure) string {
	mend := Mending(f.Mend)
	if mend == "" {
		mend = "`uwf fsck` in a clone of the repository says what else is wrong."
	}
	return join("This is what is known:", p.printed(f.Message, p.text/2), mend, "Then:", p.command("retry", ""))
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
			ways = append(ways, upperFirst(found[1])+":", fenced(found[2], "sh"))
		} else if way != "" {
			ways = append(ways, upperFirst(markdown.Escape(way))+".")
		}
	}
	return join(ways...)
}

// kept says where the work of a failed step is.
func (p page) kept(f Failure) string {
	before := ""
	if b := p.branch(); b != "" && len(p.commits()) > 0 {
		before = "The work of the steps before it is on " + b + "."
	}
	ref := strings.TrimPrefix(f.Attempt, "refs/")
	if f.Attempt == "" || !safeRef(ref) {
		return before
	}
	return join(strings.TrimSpace(before+" What it had done itself is kept, too:"), fenced("git fetch origin refs/"+ref+" && git show FETCH_HEAD", "sh"))
}

// safeRef reports a name that a shell takes as it stands.
func safeRef(s string) bool {
	return s != "" && len(s) <= 300 && s[0] != '-' && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune("/._-", r))
	})
}

// prevented says why there is no pull request, and how to open one.
func (p page) prevented() string {
	if p.State != Delivered || p.Prevented == "" {
		return ""
	}
	open := ""
	if markdown.IsAddress(p.Links.Compare) {
		open = "**[Open the pull request](" + p.Links.Compare + ")** – the changes are on " + p.branch() + "."
	} else if b := p.branch(); b != "" {
		open = "The changes are on " + b + "."
	}
	return join(p.markdown(p.Prevented, "> ", 2_000), open)
}

// chart is the graph with the way taken and the place where the thread stands.
func (p page) chart() string {
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
	return fenced(m, "mermaid")
}

// wide is how many nodes fit beside each other on a forge's page; a larger graph
// goes down.
const wide = 8

// used is what the thread used of its limits, on one line. Only one dollar sign
// stands in it: between two of them forges see a formula.
func (p page) used() string {
	if p.isUnread() {
		return ""
	}
	var parts []string
	n := fmt.Sprint(p.next() - 1)
	if p.MaxSteps > 0 {
		n += fmt.Sprint(" of ", p.MaxSteps)
	}
	unit := " steps"
	if n == "1" {
		unit = " step"
	}
	parts = append(parts, n+unit)
	var all time.Duration
	for _, s := range p.Steps {
		all += max(s.Took, 0)
	}
	if all > 0 {
		parts = append(parts, took(all))
	}
	if p.Tokens > 0 || p.MaxTokens > 0 {
		tokens := amount(p.Tokens)
		if p.MaxTokens > 0 {
			tokens += " of " + amount(p.MaxTokens)
		}
		parts = append(parts, tokens+" tokens")
	}
	if p.CostUSD > 0 || p.MaxCostUSD > 0 || p.Unpriced {
		cost := price(p.CostUSD, p.Unpriced)
		if p.MaxCostUSD > 0 {
			cost += " of " + dollars(p.MaxCostUSD)
		}
		parts = append(parts, cost)
	}
	return strings.Join(parts, " · ")
}

// footer says whose page this is and where the rest can be read.
func (p page) footer() string {
	parts := []string{label(p.Workflow), markdown.Link("`"+word(p.ID)+"`", p.log())}
	if p.isUnread() {
		parts = parts[1:]
	}
	if markdown.IsAddress(p.Links.Run) {
		parts = append(parts, markdown.Link("job", p.Links.Run))
	}
	if b := p.branch(); b != "" && len(p.commits()) > 0 {
		parts = append(parts, b)
	}
	if p.Pull != nil && p.Pull.Number > 0 {
		parts = append(parts, fmt.Sprintf("#%d", p.Pull.Number))
	}
	return "<sub>" + strings.Join(parts, " · ") + "</sub>"
}

// log is where the thread's commits are listed.
func (p page) log() string {
	if p.Links.StateBranch == "" || word(p.ID) == "" {
		return ""
	}
	return p.Links.LogURL(p.Links.StateBranch, "threads/"+word(p.ID))
}

// branch is the work branch as a link.
func (p page) branch() string {
	b := p.Links.WorkBranch
	if b == "" || len(b) > 250 {
		return ""
	}
	shown := b
	if !safeRef(b) {
		shown = name(b)
	}
	return markdown.Link(code(shown), p.Links.BranchURL(b))
}

// commits are those of the steps.
func (p page) commits() []string {
	var out []string
	for _, s := range p.Steps {
		if s.Commit != "" {
			out = append(out, s.Commit)
		}
	}
	return out
}
