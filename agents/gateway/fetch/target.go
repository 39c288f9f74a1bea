package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/idna"

	"github.com/united-workforce/uwf/internal/lazyregexp"
	"github.com/united-workforce/uwf/internal/text"
)

const httpsPort = 443

// checkURL reads an URL that an agent or a redirection from another URL names, and writes
// it in its one form: the host in ASCII and small letters, no port, no fragment.
func checkURL(from *url.URL, raw string) (*url.URL, error) {
	if len(raw) > MaxURL {
		return nil, fmt.Errorf("the URL has %d bytes, more than the %d that are taken", len(raw), MaxURL)
	}
	u, err := url.Parse(raw)
	if err == nil && from != nil {
		u = from.ResolveReference(u)
	}
	switch {
	case err != nil:
		return nil, errors.New("this is no URL; write it as https://host/path")
	case u.Scheme != "https" || u.Opaque != "":
		return nil, fmt.Errorf("only https:// is fetched, and not %.20q", u.Scheme+":")
	case u.User != nil:
		return nil, errors.New("the URL holds a user or a password; only what is public is fetched")
	case u.Port() != "" && u.Port() != "443" || strings.HasSuffix(u.Host, ":"):
		return nil, errors.New("the URL names a port; only that of https, 443, is asked")
	}
	host, err := normaliseHost(u.Hostname())
	if err != nil {
		return nil, err
	}
	u.Host, u.Fragment, u.RawFragment = host, "", ""
	if n := len(u.String()); n > MaxURL {
		return nil, fmt.Errorf("the URL has %d bytes written out, more than the %d that are taken", n, MaxURL)
	}
	return u, nil
}

// numeric is a last label that makes a host an IPv4 address to resolvers (WHATWG URL, "ends
// in a number"): 127.1, 0x7f000001 and 2130706433 are all 127.0.0.1.
var numeric = lazyregexp.New(`^([0-9]+|0x[0-9a-f]*)$`)

// hostName is a name of DNS with a dot in it.
var hostName = lazyregexp.New(`^[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9_-]{0,61}[a-z0-9])?)+$`)

// normaliseHost writes a host's name as it is looked up and compared with the list.
func normaliseHost(host string) (string, error) {
	// An address first, before the mapping below could make another one of it.
	if _, err := netip.ParseAddr(host); err == nil {
		return "", errAddress
	}
	ascii, err := idna.Lookup.ToASCII(host)
	if err != nil {
		ascii = strings.ToLower(host) // such as _name.example.com, which DNS has
	}
	name := strings.TrimSuffix(ascii, ".")
	if numeric.MatchString(name[strings.LastIndexByte(name, '.')+1:]) {
		return "", errAddress
	}
	if len(name) > 253 || !hostName.MatchString(name) {
		return "", fmt.Errorf("%.80q is no name of a host on the internet", host)
	}
	return name, nil
}

var errAddress = errors.New("the URL names an address; hosts are fetched by their names")

// allowHost refuses a host that is not listed.
func (f *Fetcher) allowHost(host string) error {
	for _, entry := range f.o.Hosts {
		below, all := strings.CutPrefix(entry, "*")
		if entry == host || all && strings.HasSuffix(host, below) {
			return nil
		}
	}
	return fmt.Errorf("the host %s is not listed; allowed are: %s (fetch.hosts in uwf's settings)", host, text.Cut(strings.Join(f.o.Hosts, ", "), 400))
}

// resolvePublic looks a name up, once. One address that is not public spoils the name:
// whoever mixes them wants to be let in.
func (f *Fetcher) resolvePublic(ctx context.Context, host string) ([]netip.Addr, error) {
	found, err := f.o.Resolve(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("its name can't be resolved: %w", err)
	}
	var out []netip.Addr
	for _, a := range found {
		if a = a.Unmap(); !isPublic(a) {
			return nil, fmt.Errorf("it leads to the address %s, which is not on the public internet", a)
		}
		out = append(out, a)
	}
	if len(out) == 0 {
		return nil, errors.New("its name has no address")
	}
	slices.SortStableFunc(out, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() }) // IPv4 is there nearly always
	return out, nil
}

// isPublic reports whether an address is one that anybody on the internet can be meant by:
// IANA's registries of special-purpose addresses (RFC 6890 and what was added since) without
// those that are globally reachable. Of IPv6 only 2000::/3 is given out; what there stands for
// an IPv4 address (NAT64 lies outside of it, 6to4 and Teredo inside) could stand for a private one.
func isPublic(a netip.Addr) bool {
	if !a.IsValid() || a.Zone() != "" {
		return false
	}
	if a.Is6() && !netip.MustParsePrefix("2000::/3").Contains(a) {
		return false
	}
	return !slices.ContainsFunc(specialNets(), func(p netip.Prefix) bool { return p.Contains(a) })
}

func specialNets() (out []netip.Prefix) {
	for _, p := range []string{
		"0.0.0.0/8",       // this network
		"10.0.0.0/8",      // private
		"100.64.0.0/10",   // carriers' (CGNAT)
		"127.0.0.0/8",     // loopback
		"169.254.0.0/16",  // link-local; clouds' metadata
		"172.16.0.0/12",   // private
		"192.0.0.0/24",    // IETF protocols
		"192.0.2.0/24",    // documentation
		"192.88.99.0/24",  // 6to4 relays
		"192.168.0.0/16",  // private
		"198.18.0.0/15",   // benchmarks
		"198.51.100.0/24", // documentation
		"203.0.113.0/24",  // documentation
		"224.0.0.0/4",     // multicast
		"240.0.0.0/4",     // reserved, and broadcast
		"2001::/23",       // IETF protocols, Teredo among them
		"2001:db8::/32",   // documentation
		"2002::/16",       // 6to4
		"3fff::/20",       // documentation
	} {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}
