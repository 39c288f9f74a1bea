package wire

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/united-workforce/uwf/gitcas/wire/internal/transport"
)

// offers are the capabilities of a service that a server has named.
type offers struct {
	named atomic.Pointer[transport.Caps]
}

// loadCaps returns the capabilities; nil if the server has not named any yet.
func (o *offers) loadCaps() transport.Caps {
	if caps := o.named.Load(); caps != nil {
		return *caps
	}
	return nil
}

// storeCaps stores the capabilities that an answer names, unless it names none (nil), and returns
// those that are known.
func (o *offers) storeCaps(named transport.Caps) transport.Caps {
	if named != nil {
		o.named.Store(&named)
	}
	return o.loadCaps()
}

// newRead makes a call of upload-pack, whose body depends on the server's capabilities.
func (r *remote) newRead(v2 bool, body func(transport.Caps) []byte) transport.Call {
	return transport.Call{Service: transport.UploadPack, V2: v2, Body: func(said transport.Caps) ([]byte, error) {
		return body(r.uploads.storeCaps(said)), nil
	}}
}

func (r *remote) isHTTP() bool { return strings.HasPrefix(r.URL(), "http") }

// knowsVersion reports whether there is no need to ask for the version: ssh names it in each answer,
// git on this machine has its own, and a forge speaks version 2.
func (r *remote) knowsVersion() bool {
	return !r.isHTTP() || r.forge || r.v2Works.Load() || r.noV2.Load()
}

// askVersion asks over HTTP, once, which version the server speaks, and what it offers in it
// (gitprotocol-http(5)). To a request in version 2 dulwich 0.21 answers with status 500, gitkit 0.4
// with bare text, and npm's servers not at all: one of them ends when the request is given up.
func (r *remote) askVersion(ctx context.Context) error {
	if r.knowsVersion() {
		return nil
	}

	ad, err := r.readAdvertisement(ctx, transport.Call{Service: transport.UploadPack, Advert: true, V2: true})
	if err != nil {
		return err
	}

	r.uploads.storeCaps(ad.caps)
	r.v2Works.Store(ad.v2)
	r.noV2.Store(!ad.v2)
	return nil
}

// readReceiver reads what the server offers to those who push.
func (r *remote) readReceiver(ctx context.Context) error {
	ad, err := r.readAdvertisement(ctx, transport.Call{Service: transport.ReceivePack, Advert: true})
	if err == nil {
		r.receives.storeCaps(ad.caps)
	}
	return err
}

func (r *remote) readAdvertisement(ctx context.Context, c transport.Call) (advertisement, error) {
	a, err := r.t.Exchange(ctx, c)
	if err != nil {
		return advertisement{}, err
	}
	ad, err := parseAdvertisement(a, transport.MaxRefs, nil)
	if ad.caps == nil {
		ad.caps = transport.Caps{} // it offers nothing
	}
	return ad, a.Finish(err)
}
