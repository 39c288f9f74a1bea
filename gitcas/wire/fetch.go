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
func fetchRequest(req FetchRequest, offered transport.Caps) []byte {
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
	if req.Depth > 0 && offered.Offers("shallow") {
		b = pktline.Append(b, "deepen ", strconv.Itoa(req.Depth), "\n")
	}
	if req.Filter != "" && offered.Offers("filter") {
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
// one fall-back. It names only capabilities that the server offers.
func fetchRequestV0(req FetchRequest, offered transport.Caps) []byte {
	names := []string{"side-band-64k", "ofs-delta", "no-progress", "agent"}
	if !offered.Offers("agent") {
		// dulwich 0.21, which has no name, insists on a thin pack. Who keeps no objects can read
		// one only if it says that it has none.
		req.Haves = nil
	}
	if offered != nil && len(req.Haves) == 0 {
		names = append(names, "thin-pack")
	}
	caps := nameOffered(offered, names)
	var b []byte
	for _, w := range req.Wants {
		b = pktline.Append(b, "want ", w.String(), caps, "\n")
		caps = ""
	}
	if req.Depth > 0 && offered.Offers("shallow") {
		b = pktline.Append(b, "deepen ", strconv.Itoa(req.Depth), "\n")
	}
	b = append(b, "0000"...)
	for _, h := range req.Haves {
		b = pktline.Append(b, "have ", h.String(), "\n")
	}
	return pktline.Append(b, "done\n")
}

// nameOffered is how a request names those of some capabilities that a server offers.
func nameOffered(offered transport.Caps, names []string) string {
	var b strings.Builder
	for _, name := range names {
		if offered.Offers(name) {
			b.WriteString(" " + name)
			if name == "agent" {
				b.WriteString("=" + transport.Agent)
			}
		}
	}
	return b.String()
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
