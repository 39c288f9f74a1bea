package wire

import (
	"github.com/united-workforce/uwf/gitcas/wire/internal/pack"
	"github.com/united-workforce/uwf/gitcas/wire/internal/transport"
)

// DialOptions say how to reach a remote. The zero value works.
type DialOptions = transport.Options

// Dial returns the remote at a URL without contacting it. It takes http://,
// https://, file:// and ssh:// URLs, absolute paths, and the short form of ssh,
// user@host:path.
func Dial(rawURL string, o DialOptions) (Remote, error) {
	t, err := transport.New(rawURL, o)
	if err != nil {
		return nil, NewError("open", transport.CleanURL(rawURL), err)
	}
	return &remote{t: t}, nil
}

// fetchLimits bound what one fetch may hold.
var fetchLimits = pack.Limits{Object: 128 << 20, Total: 1 << 30, Count: 2_000_000}
