package wire

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
	"github.com/united-workforce/uwf/gitcas/wire/internal/pack"
	"github.com/united-workforce/uwf/gitcas/wire/internal/pktline"
	"github.com/united-workforce/uwf/gitcas/wire/internal/transport"
)

// fetchRequest asks for objects in protocol version 2. Everything is said at
// once ("done"), so the answer comes in one round. thin-pack is not asked for:
// a pack then stands for itself.
func fetchRequest(req FetchRequest, filter bool) []byte {
	b := pktline.Append(nil, "command=fetch")
	b = pktline.Append(b, "agent=", transport.Agent)
	b = append(b, "0001"...)
	b = pktline.Append(b, "ofs-delta\n")
	b = pktline.Append(b, "no-progress\n")
	for _, w := range req.Wants {
		b = pktline.Append(b, "want ", w.String(), "\n")
	}
	for _, h := range req.Haves {
		b = pktline.Append(b, "have ", h.String(), "\n")
	}
	if req.Depth > 0 {
		b = pktline.Append(b, "deepen ", strconv.Itoa(req.Depth), "\n")
	}
	if filter {
		b = pktline.Append(b, "filter ", req.Filter, "\n")
	}
	b = pktline.Append(b, "done\n")
	return append(b, "0000"...)
}

// answerLimit is how many bytes an answer may have whose pack keeps to its limits: data
// that can't be compressed, each object's header, and what is around the pack. A pack
// may be compressed so that it never ends and holds nothing.
func answerLimit(lim pack.Limits) int64 {
	return lim.Total + lim.Total/8 + 64*int64(lim.Count) + pktline.MaxTalk
}

// parseFetch reads the sections of a version 2 answer up to the packfile and
// the pack itself.
func parseFetch(r io.Reader, lim pack.Limits) (Objects, error) {
	p := pktline.NewReader(r, answerLimit(lim))
	for head := true; ; {
		kind, line, err := p.Line()
		switch {
		case err != nil:
			return nil, err
		case kind == pktline.Delim:
			head = true
		case kind != pktline.Data:
			return nil, fmt.Errorf("%w: an answer without a pack", ErrUnreadable)
		case head && line == "packfile":
			return pack.ReadObjects(pktline.NewBands(p), lim)
		case head:
			if line != "shallow-info" && line != "acknowledgments" && line != "wanted-refs" && line != "packfile-uris" {
				return nil, fmt.Errorf("%w: a section %q before the pack", ErrUnreadable, fault.OneLine(line))
			}
			head = false
		}
	}
}

// fetchRequestV0 asks for objects in protocol version 0, without a filter: the
// one fall-back. Capabilities that a server doesn't have it ignores here.
func fetchRequestV0(req FetchRequest) []byte {
	var b []byte
	for i, w := range req.Wants {
		caps := ""
		if i == 0 {
			caps = " side-band-64k ofs-delta no-progress agent=" + transport.Agent
		}
		b = pktline.Append(b, "want ", w.String(), caps, "\n")
	}
	if req.Depth > 0 {
		b = pktline.Append(b, "deepen ", strconv.Itoa(req.Depth), "\n")
	}
	b = append(b, "0000"...)
	for _, h := range req.Haves {
		b = pktline.Append(b, "have ", h.String(), "\n")
	}
	return pktline.Append(b, "done\n")
}

// parseFetchV0 reads the shallow lines (when a depth was asked for), the one
// ACK or NAK, and the pack.
func parseFetchV0(r io.Reader, lim pack.Limits, shallow bool) (Objects, error) {
	p := pktline.NewReader(r, answerLimit(lim))
	for {
		kind, line, err := p.Line()
		switch {
		case err != nil:
			return nil, err
		case kind == pktline.Flush && shallow:
			shallow = false
			continue
		case kind == pktline.Data && shallow && (strings.HasPrefix(line, "shallow ") || strings.HasPrefix(line, "unshallow ")):
			continue
		case kind == pktline.Data && (line == "NAK" || strings.HasPrefix(line, "ACK ")):
		default:
			return nil, fmt.Errorf("%w: %q where NAK or ACK was due", ErrUnreadable, fault.OneLine(line))
		}
		break
	}
	return pack.ReadObjects(pktline.NewBands(p), lim)
}
