package wire

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas/wire/internal/fault"
	"github.com/united-workforce/uwf/gitcas/wire/internal/pack"
	"github.com/united-workforce/uwf/gitcas/wire/internal/pktline"
)

// TestListingLimit: an endless listing ends.
func TestListingLimit(t *testing.T) {
	line := string(pktline.Append(nil, strings.Repeat("a", 40), " refs/heads/x", "\n"))
	for name, parse := range map[string]func(io.Reader) error{
		"v2": func(r io.Reader) error { _, err := parseLsRefs(r, 1<<20, []string{"refs/"}); return err },
		"v0": func(r io.Reader) error { _, err := parseAdvertisement(r, 1<<20, []string{"refs/"}); return err },
	} {
		if err := parse(endless(line)); !errors.Is(err, ErrUnreadable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	req := PushRequest{Updates: []RefUpdate{{Name: "refs/heads/x"}}}
	for _, s := range []string{string(pktline.Append(nil, "\x02noise\n")), string(pktline.Append(nil, "unpack ok\n")), string(pktline.Append(nil, "option x\n"))} {
		if _, err := parseReport(endless(s), req, ""); !errors.Is(err, ErrUnreachable) {
			t.Errorf("report of %q: %v", s, err)
		}
	}
}

// TestFetchLimit: an endless answer to a fetch ends, whatever it is made of.
func TestFetchLimit(t *testing.T) {
	pkt := func(s string) string { return string(pktline.Append(nil, s)) }
	// A blob whose compressed data is blocks of nothing.
	nothing := "PACK\x00\x00\x00\x02\x00\x00\x00\x01\x31\x78\x9c"
	blocks := strings.Repeat("\x00\x00\x00\xff\xff", 1000)
	lim := pack.Limits{Object: 1 << 10, Total: 1 << 20, Count: 100}
	for name, tc := range map[string]struct{ begin, again string }{
		"progress":           {pkt("packfile\n"), pkt("\x02" + strings.Repeat("x", 60_000))},
		"keep-alives":        {pkt("packfile\n"), pkt("\x02")},
		"packets of no data": {pkt("packfile\n"), pkt("\x01")},
		"blocks of nothing":  {pkt("packfile\n") + pkt("\x01"+nothing), pkt("\x01" + blocks)},
		"separators":         {"", "0001"},
		"sections":           {"", "0001" + pkt("shallow-info\n")},
		"lines of a section": {pkt("shallow-info\n"), pkt("shallow " + strings.Repeat("a", 40) + "\n")},
	} {
		if _, err := parseFetch(io.MultiReader(strings.NewReader(tc.begin), endless(tc.again)), lim); !errors.Is(err, ErrUnreadable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, tc := range map[string]struct{ begin, again string }{
		"progress":        {pkt("NAK\n"), pkt("\x02x")},
		"shallow lines":   {"", pkt("shallow " + strings.Repeat("a", 40) + "\n")},
		"a bare pack":     {pkt("NAK\n") + nothing, blocks},
		"a pack in bands": {pkt("NAK\n") + pkt("\x01"+nothing), pkt("\x01" + blocks)},
	} {
		shallow := strings.HasPrefix(tc.again, "0035shallow")
		if _, err := parseFetchV0(io.MultiReader(strings.NewReader(tc.begin), endless(tc.again)), lim, shallow); !errors.Is(err, ErrUnreadable) {
			t.Errorf("version 0, %s: %v", name, err)
		}
	}
}

// repeated repeats a text for ever.
type repeated struct{ s, rest string }

func endless(s string) io.Reader { return &repeated{s: strings.Repeat(s, 1+4096/len(s))} }

func (r *repeated) Read(b []byte) (int, error) {
	if r.rest == "" {
		r.rest = r.s
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func TestReport(t *testing.T) {
	req := PushRequest{Updates: []RefUpdate{{Name: "refs/heads/a"}, {Name: "refs/heads/b"}}}
	band := func(s string) string { return string(pktline.Append(nil, "\x01"+s)) + "0000" }
	bare := func(lines ...string) string {
		var b []byte
		for _, l := range lines {
			b = pktline.Append(b, l+"\n")
		}
		return string(b) + "0000"
	}
	pkts := func(lines ...string) string { return band(bare(lines...)) }
	for name, tc := range map[string]struct {
		in      string
		applied int
		kind    error // of the parse
	}{
		"without bands":     {bare("unpack ok", "ok refs/heads/a", "ok refs/heads/b"), 0, ErrUnreachable},
		"banded":            {pkts("unpack ok", "ok refs/heads/a", "ok refs/heads/b"), 2, nil},
		"no outer flush":    {strings.TrimSuffix(pkts("unpack ok", "ok refs/heads/a", "ok refs/heads/b"), "0000"), 2, nil},
		"options":           {pkts("unpack ok", "ok refs/heads/a", "option refname refs/x", "ok refs/heads/b"), 2, nil},
		"one refused":       {pkts("unpack ok", "ok refs/heads/a", "ng refs/heads/b stale info"), 1, nil},
		"unpack failed":     {pkts("unpack index-pack abnormal exit", "ng refs/heads/a unpacker error", "ng refs/heads/b unpacker error"), 0, nil},
		"one left out":      {pkts("unpack ok", "ok refs/heads/a"), 0, ErrUnreachable},
		"said twice":        {pkts("unpack ok", "ok refs/heads/a", "ok refs/heads/a"), 0, ErrUnreadable},
		"another ref":       {pkts("unpack ok", "ok refs/heads/c"), 0, ErrUnreadable},
		"no unpack":         {pkts("ok refs/heads/a", "ok refs/heads/b"), 0, ErrUnreadable},
		"unknown verb":      {pkts("unpack ok", "maybe refs/heads/a"), 0, ErrUnreadable},
		"empty":             {"", 0, ErrUnreachable},
		"flush":             {"0000", 0, ErrUnreachable},
		"fatal band":        {string(pktline.Append(nil, "\x03Permission denied")), 0, ErrDenied},
		"text, then nought": {string(pktline.Append(nil, "\x02error: GH006: Protected branch update failed for refs/heads/a.\n")), 0, ErrProtected},
		"ERR":               {string(pktline.Append(nil, "ERR Repository not found.")), 0, ErrNotFound},
	} {
		res, err := parseReport(strings.NewReader(tc.in), req, "")
		if tc.kind != nil {
			if err == nil || !errors.Is(fault.KindOf(err), tc.kind) {
				t.Errorf("%s: %v, want %v", name, err, tc.kind)
			}
			continue
		}
		if err != nil || len(res.Applied) != tc.applied || len(res.Refused) != 2-tc.applied {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
}
