package wire

import (
	"fmt"
	"io"
	"strings"

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
	"github.com/united-workforce/uwf/gitcas/wire/internal/pktline"
	"github.com/united-workforce/uwf/gitcas/wire/internal/transport"
)

// lsRefsRequest asks for refs in protocol version 2 (gitprotocol-v2(5)). It is
// sent without reading the server's capabilities first: agent, symrefs and
// ref-prefix are part of every version 2.
func lsRefsRequest(prefixes []string) []byte {
	b := pktline.Append(nil, "command=ls-refs\n")
	b = pktline.Append(b, "agent=", transport.Agent)
	b = append(b, "0001"...)
	b = pktline.Append(b, "symrefs\n")
	for _, p := range prefixes {
		b = pktline.Append(b, "ref-prefix ", p, "\n")
	}
	return append(b, "0000"...)
}

// parseLsRefs reads the answer: one line a ref, up to a flush. Servers may send
// refs that no prefix asked for: these are left out.
func parseLsRefs(r io.Reader, limit int64, prefixes []string) (Listing, error) {
	l := Listing{Refs: make(map[string]ID)}
	p := pktline.NewReader(r, limit)
	for {
		kind, line, err := p.Line()
		switch {
		case err != nil:
			return Listing{}, err
		case kind == pktline.Flush:
			return l, nil
		case kind != pktline.Data:
			return Listing{}, fmt.Errorf("%w: a separator among the refs", ErrUnreadable)
		}
		id, name, attrs, err := refLine(line)
		if err != nil {
			return Listing{}, err
		}
		if name == "HEAD" {
			l.Head = parseSymref(attrs, prefixes)
			continue
		}
		if hasPrefix(name, prefixes) {
			l.Refs[name] = id
		}
	}
}

// refLine reads "<id> <name>[ <attribute>…]".
func refLine(line string) (id ID, name, attrs string, err error) {
	hex, rest, ok := strings.Cut(line, " ")
	id, okID := parseID(hex)
	if sha256ID.MatchString(hex) {
		return ZeroID, "", "", ErrSHA256
	}
	name, attrs, _ = strings.Cut(rest, " ")
	if !ok || !okID || (name != "HEAD" && !validRefName(name)) {
		return ZeroID, "", "", fmt.Errorf("%w: %q is no line of a ref listing", ErrUnreadable, fault.OneLine(line))
	}
	return id, name, attrs, nil
}

// parseSymref finds where HEAD points to among a line's attributes, if it was asked.
func parseSymref(attrs string, prefixes []string) string {
	if !hasPrefix("HEAD", prefixes) {
		return ""
	}
	for a := range strings.FieldsSeq(attrs) {
		if target, ok := strings.CutPrefix(a, "symref-target:"); ok && validRefName(target) {
			return target
		}
	}
	return ""
}

// advertisement is what a server sends unasked.
type advertisement struct {
	Listing
	v2   bool
	caps transport.Caps
}

// parseAdvertisement reads the refs and capabilities of protocol version 0
// (gitprotocol-pack(5)), with or without the line that HTTP puts before them, or the
// capabilities of version 2. Of the refs it keeps those that the prefixes ask for.
func parseAdvertisement(r io.Reader, limit int64, prefixes []string) (advertisement, error) {
	ad := advertisement{Listing: Listing{Refs: make(map[string]ID)}}
	p := pktline.NewReader(r, limit)
	for service := false; ; {
		kind, line, err := p.Line()
		switch {
		case err != nil:
			return advertisement{}, err
		case kind == pktline.Flush && service:
			service = false // the flush after that line
			continue
		case kind == pktline.Flush:
			return ad, nil
		case kind != pktline.Data:
			return advertisement{}, fmt.Errorf("%w: a separator among the refs", ErrUnreadable)
		case ad.caps == nil && strings.HasPrefix(line, "# service="):
			service = true
			continue
		case line == "version 1":
			continue
		case line == "version 2":
			ad.v2, ad.caps = true, transport.Caps{}
			continue
		}
		if err := ad.addLine(line, prefixes); err != nil {
			return advertisement{}, err
		}
	}
}

func (ad *advertisement) addLine(line string, prefixes []string) error {
	if ad.v2 {
		return ad.caps.Add(line)
	}
	line, caps, first := strings.Cut(line, "\x00")
	if first || ad.caps == nil {
		ad.caps = transport.Caps{}
		if err := ad.caps.Add(caps); err != nil {
			return err
		}
		for c := range strings.FieldsSeq(caps) {
			if target, ok := strings.CutPrefix(c, "symref=HEAD:"); ok && hasPrefix("HEAD", prefixes) && validRefName(target) {
				ad.Head = target
			}
		}
	}
	if strings.HasSuffix(line, " capabilities^{}") || strings.HasPrefix(line, "shallow ") ||
		strings.HasSuffix(line, "^{}") || strings.HasSuffix(line, " .have") {
		return nil
	}
	id, name, _, err := refLine(line)
	if err != nil {
		return err
	}
	if name != "HEAD" && hasPrefix(name, prefixes) {
		ad.Refs[name] = id
	}
	return nil
}
