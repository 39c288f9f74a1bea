package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
	"github.com/united-workforce/uwf/gitcas/wire/internal/pack"
	"github.com/united-workforce/uwf/gitcas/wire/internal/pktline"
	"github.com/united-workforce/uwf/gitcas/wire/internal/transport"
	"github.com/united-workforce/uwf/internal/lists"
)

// pushRequest makes the body of a push: the commands with their expected
// values, and the pack, unless refs are only deleted. Of a server that is not known, capabilities
// are named that git's has: it ignores those it doesn't have, and the report is checked ref by
// ref.
func pushRequest(req PushRequest, offered transport.Caps, thin bool) ([]byte, error) {
	if req.Atomic && !offered.Offers("atomic") {
		return nil, ErrNotAtomic
	}
	names := []string{"report-status", "side-band-64k", "agent"}
	if req.Atomic {
		names = append(names, "atomic")
	}
	caps := "\x00" + nameOffered(offered, names)
	var head []byte
	onlyDeletes := true
	for _, u := range req.Updates {
		head = pktline.Append(head, u.Old.String(), " ", u.New.String(), " ", u.Name, caps)
		caps = ""
		onlyDeletes = onlyDeletes && u.New.IsZero()
	}
	head = append(head, "0000"...)
	if onlyDeletes {
		return head, nil
	}
	objs := req.Objects
	if !thin || offered["no-thin"] {
		objs = lists.Map(objs, func(o PackObject) PackObject { return PackObject{Object: o.Object} })
	}
	out := bytes.NewBuffer(head)
	if err := pack.Append(out, objs); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// maxReport bounds a report and what the server says around it.
const maxReport = 4 << 20

// errNoReport: nobody knows what became of the push.
var errNoReport = fmt.Errorf("%w: the server did not report what became of the push; it may have happened", ErrUnreachable)

// parseReport reads the report-status answer and says
// what became of every update. A ref that the report leaves out is a failure.
func parseReport(r io.Reader, req PushRequest, url string) (*PartialError, error) {
	p := pktline.NewReader(r, maxReport)
	lines, text, err := reportLines(p)
	if err != nil {
		return nil, newNoReportError(err, text)
	}
	unpack, ok := strings.CutPrefix(lines[0], "unpack ")
	if !ok {
		return nil, fmt.Errorf("%w: a report that begins with %q", ErrUnreadable, fault.OneLine(lines[0]))
	}
	res := &PartialError{URL: url, Refused: make(map[string]*RemoteError)}
	fail := func(ref, reason string) {
		detail, kind := fault.TranslateRefusal(ref, reason, text)
		e := &RemoteError{Op: opPush, URL: url, Ref: ref, Kind: kind, Detail: detail, InTheWay: fault.RefInTheWay(detail)}
		_, e.MostRefs, _ = fault.TooManyRefs(detail)
		res.Refused[ref] = e
	}
	left := make(map[string]bool, len(req.Updates))
	for _, u := range req.Updates {
		left[u.Name] = true
		if unpack != "ok" {
			fail(u.Name, "unpack "+unpack)
		}
	}
	if unpack != "ok" {
		return res, nil
	}
	for _, line := range lines[1:] {
		verb, rest, _ := strings.Cut(line, " ")
		name, reason, _ := strings.Cut(rest, " ")
		switch {
		case verb == "option":
			continue
		case verb != "ok" && verb != "ng" || !left[name]:
			return nil, fmt.Errorf("%w: %q in the report", ErrUnreadable, fault.OneLine(line))
		case verb == "ok":
			res.Applied = append(res.Applied, name)
		default:
			fail(name, reason)
		}
		delete(left, name)
	}
	for name := range left {
		return nil, fmt.Errorf("%w: nothing about %s in the report", errNoReport, name)
	}
	return res, nil
}

// newNoReportError says what a push without a whole report is. What the server told
// people may still name the reason; a refusal there is only believed when it is
// known not to be a lost race, for which there would be a report.
func newNoReportError(err error, text string) error {
	saying := fault.TellingLine("", text)
	if known, kind := fault.Translate(saying); known && !errors.Is(kind, ErrLostRace) && !errors.Is(kind, ErrUnreachable) {
		return fmt.Errorf("%w: %s", kind, saying)
	}
	if saying != "" {
		return fmt.Errorf("%w: %w (it said: %s)", errNoReport, err, saying)
	}
	return fmt.Errorf("%w: %w", errNoReport, err)
}

// reportLines gathers the report's lines (at least one) and the text beside it. The report,
// packets of its own, is the content of band 1.
func reportLines(p *pktline.Reader) (lines []string, text string, err error) {
	b := pktline.NewBands(p)
	inner := pktline.NewReader(b, maxReport)
	for {
		kind, line, err := inner.Line()
		switch {
		case err != nil:
			return nil, b.Text(), err
		case kind == pktline.Flush && len(lines) == 0:
			return nil, b.Text(), fmt.Errorf("%w: an empty report", fault.ErrEarly)
		case kind == pktline.Flush:
			// It is read to the end, as the server may say more after it. With the
			// report complete, a broken end loses nothing but text.
			_, _ = io.Copy(io.Discard, b)
			return lines, b.Text(), nil
		case kind != pktline.Data:
			return nil, b.Text(), fmt.Errorf("%w: a separator in the report", ErrUnreadable)
		}
		lines = append(lines, line)
	}
}
