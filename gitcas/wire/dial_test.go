package wire_test

import (
	"strings"
	"testing"

	"github.com/united-workforce/uwf/gitcas/wire"
)

func TestDial(t *testing.T) {
	secret := "s3c" + "ret"
	for raw, want := range map[string]string{
		"https://example.org/o/r.git":                         "https://example.org/o/r.git",
		"https://user:" + secret + "@example.org/o/r.git?x=y": "https://example.org/o/r.git",
		"http://127.0.0.1:8080/r":                             "http://127.0.0.1:8080/r",
		"file:///srv/r.git":                                   "file:///srv/r.git",
		"file://localhost/srv/a b.git":                        "file:///srv/a%20b.git",
		"/srv/r.git/":                                         "file:///srv/r.git",
		"ssh://git@example.org/o/r.git":                       "ssh://git@example.org/o/r.git",
		"ssh://git:" + secret + "@example.org:2222/~me/r.git": "ssh://git@example.org:2222/~me/r.git",
		"git@example.org:o/r.git":                             "ssh://git@example.org/o/r.git",
		"example.org:r":                                       "ssh://example.org/r",
		"ssh://[::1]:22/r":                                    "ssh://[::1]:22/r",
	} {
		r, err := wire.Dial(raw, wire.DialOptions{})
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if r.URL() != want {
			t.Errorf("%s is called %s, want %s", raw, r.URL(), want)
		}
	}
}

func TestDialRefuses(t *testing.T) {
	secret := "s3c" + "ret"
	for _, raw := range []string{
		"", "relative/path", "./x", "ftp://example.org/r", "ext::sh -c id", "https:///r", "https://user:" + secret + "@/r",
		"file://elsewhere/r", "-oProxyCommand=id:r", "ssh://-oProxyCommand=id/r", "ssh://-l@example.org/r",
		"example.org:-upload-pack=id", "ssh://example.org", "ssh://example.org/", "ssh://example.org:99999/r", "ssh://example.org/a%0ab",
		"git@exa mple.org:r", "https://user:" + secret + "%zz@example.org/r", "://" + secret + "@x", "ssh://a:" + secret + "@/x",
	} {
		_, err := wire.Dial(raw, wire.DialOptions{})
		wantKind(t, err, wire.ErrInvalid, raw)
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("the message holds the password: %v", err)
		}
	}
}
