package command

import (
	"io"

	"github.com/united-workforce/uwf/agents/internal/headtail"
	"github.com/united-workforce/uwf/engine/redact"
	"github.com/united-workforce/uwf/internal/text"
)

// output takes what a command prints. Secrets are taken out of the stream before its middle
// is, so that a cut leaves no part of one.
type output struct {
	io.Writer
	kept  *headtail.Buffer
	clean *redact.Writer // nil: nothing is redacted
}

func newOutput(most int, r *redact.Redactor) *output {
	o := &output{kept: &headtail.Buffer{Half: most / 2}}
	o.Writer = o.kept
	if r != nil {
		o.clean = r.NewWriter(o.kept)
		o.Writer = o.clean
	}
	return o
}

// finishOutput is what was kept. The error is an ErrOutput.
func (o *output) finishOutput() (kept string, err error) {
	if o.clean != nil {
		err = o.clean.Close()
	}
	return text.Lines(o.kept.String()), err
}
