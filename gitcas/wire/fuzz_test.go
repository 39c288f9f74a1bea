package wire

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/united-workforce/uwf/gitcas/wire/internal/pack"
	"github.com/united-workforce/uwf/gitcas/wire/internal/pktline"
)

// The parsers must give an answer or an error of a known kind, whatever comes.

func checkKind(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	e := NewError("fuzz", "x", err)
	if e.Kind == nil || len(e.Error()) > 4096 || strings.ContainsAny(e.Error(), "\n\r\x1b") {
		t.Errorf("the error is %q", e.Error())
	}
}

func FuzzLsRefs(f *testing.F) {
	id := strings.Repeat("0123456789", 4)
	f.Add(append(pktline.Append(pktline.Append(nil, id, " HEAD symref-target:refs/heads/main\n"), id, " refs/heads/main\n"), "0000"...))
	f.Add(append(pktline.Append(nil, id, " refs/heads/a\x00multi_ack symref=HEAD:refs/heads/a atomic\n"), "0000"...))
	f.Add([]byte("001e# service=git-upload-pack\n00000000"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := parseLsRefs(bytes.NewReader(b), 1<<20, []string{"refs/heads/", "HEAD"})
		checkListing(t, l, err)
		ad, err := parseAdvertisement(bytes.NewReader(b), 1<<20, []string{"refs/heads/", "HEAD"})
		checkListing(t, ad.Listing, err)
	})
}

func checkListing(t *testing.T, l Listing, err error) {
	t.Helper()
	checkKind(t, err)
	for name := range l.Refs {
		if !validRefName(name) || !strings.HasPrefix(name, "refs/heads/") {
			t.Errorf("a ref %q", name)
		}
	}
	if l.Head != "" && !validRefName(l.Head) {
		t.Errorf("HEAD is %q", l.Head)
	}
}

func FuzzFetchAnswer(f *testing.F) {
	var raw bytes.Buffer
	if err := pack.Append(&raw, []PackObject{{Object: NewObject(plumbing.BlobObject, []byte("x"))}}); err != nil {
		f.Fatal(err)
	}
	banded := append(pktline.Append(nil, "\x02hello", "\n"), pktline.Append(nil, "\x01", raw.String())...)
	f.Add(append(append(pktline.Append(nil, "packfile\n"), banded...), "0000"...))
	f.Add(append(append(pktline.Append(nil, "NAK\n"), banded...), "0000"...))
	f.Add(append(pktline.Append(nil, "NAK\n"), raw.Bytes()...))
	f.Add(append(pktline.Append(nil, "shallow-info\n"), "0001"...))
	lim := pack.Limits{Object: 1 << 20, Total: 4 << 20, Count: 1000}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, parse := range []func() (Objects, error){
			func() (Objects, error) { return parseFetch(bytes.NewReader(b), lim) },
			func() (Objects, error) { return parseFetchV0(bytes.NewReader(b), lim, true) },
			func() (Objects, error) { return parseFetchV0(bytes.NewReader(b), lim, false) },
		} {
			objs, err := parse()
			checkKind(t, err)
			checkObjects(t, objs)
		}
	})
}

func checkObjects(t *testing.T, objs Objects) {
	t.Helper()
	for id, o := range objs {
		if plumbing.ComputeHash(o.Type, o.Data) != id || o.ID != id {
			t.Errorf("object %s is another", id)
		}
	}
}

func FuzzReport(f *testing.F) {
	f.Add([]byte("000eunpack ok\n0016ok refs/heads/main\n0000"))
	f.Add([]byte("000eunpack ok\n0019ng refs/heads/main no\x1b\n0000"))
	f.Add(append(pktline.Append(nil, "\x01000eunpack ok\n0016ok refs/heads/main\n0000"), "0000"...))
	f.Add(pktline.Append(nil, "\x02error: denied\n"))
	req := PushRequest{Updates: []RefUpdate{{Name: "refs/heads/main", New: EmptyTree}}}
	f.Fuzz(func(t *testing.T, b []byte) {
		res, err := parseReport(bytes.NewReader(b), req, "x")
		checkKind(t, err)
		if err != nil {
			return
		}
		if len(res.Applied)+len(res.Refused) != 1 {
			t.Errorf("one update, %d taken, %d refused", len(res.Applied), len(res.Refused))
		}
		checkKind(t, res.asError(req.Updates))
		// It can't have been taken without a word of it.
		if len(res.Applied) == 1 && !bytes.Contains(b, []byte("ok")) {
			t.Error("taken without an ok")
		}
	})
}
