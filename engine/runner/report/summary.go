package report

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
