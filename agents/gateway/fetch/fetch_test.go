package fetch_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/united-workforce/uwf/agents/gateway"
	"github.com/united-workforce/uwf/agents/gateway/cassette"
	"github.com/united-workforce/uwf/agents/gateway/fetch"
	"github.com/united-workforce/uwf/internal/text"
)

// web is a server with a certificate for example.com, and a net in which names lead to
// addresses and public addresses to the server.
type web struct {
	o      fetch.Options
	names  map[string][]string
	dialed []string
	looked int
}

const public = "93.184.215.14"

func newWeb(t *testing.T, h http.HandlerFunc) *web {
	t.Helper()
	server := httptest.NewTLSServer(h)
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	w := &web{names: map[string][]string{"example.com": {public}}}
	w.o = fetch.Options{
		Hosts: []string{"example.com", "*.example.com"}, TLS: &tls.Config{RootCAs: roots},
		Resolve: func(_ context.Context, host string) (out []netip.Addr, err error) {
			w.looked++
			for _, a := range w.names[host] {
				out = append(out, netip.MustParseAddr(a))
			}
			if out == nil {
				err = &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
			}
			return out, err
		},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			w.dialed = append(w.dialed, address)
			return (&net.Dialer{}).DialContext(ctx, network, server.Listener.Addr().String())
		},
		Limit: context.WithCancel,
	}
	return w
}

func keepNothing(ctx context.Context, _ []byte, ask func(context.Context) ([]byte, error)) ([]byte, error) {
	return ask(ctx)
}

func (w *web) get(t *testing.T, rawURL string) fetch.Result {
	t.Helper()
	question, err := json.Marshal(fetch.Question{URL: rawURL})
	if err != nil {
		t.Fatal(err)
	}
	reply := fetch.New(w.o).AnswerSide(t.Context(), question, keepNothing)
	var r fetch.Result
	if err := text.DecodeJSON(reply.Body, &r); err != nil || reply.Status != http.StatusOK || (reply.Err != nil) != (r.Error != "") {
		t.Fatalf("%d %s: %v", reply.Status, reply.Body, err)
	}
	return r
}

func page(kind, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = fmt.Fprint(w, body)
	}
}

// A page is got by GET from the address that was checked, with nothing that says who asks.
func TestFetch(t *testing.T) {
	var got *http.Request
	w := newWeb(t, func(rw http.ResponseWriter, r *http.Request) {
		got = r
		rw.Header().Set("Set-Cookie", "a=b")
		page("text/html; charset=utf-8", "<title>T</title><h1>Head</h1><script>evil()</script><p>a <b>bold</b>\n word</p><ul><li>x<li>y</ul><pre>  a\n b</pre>")(rw, r)
	})
	r := w.get(t, "https://EXAMPLE.com.:443/p%20q?a=1#secret")
	want := fetch.Result{URL: "https://example.com/p%20q?a=1", Status: 200, Type: "text/html", Text: "T\n\n# Head\na bold word\n- x\n- y\n  a\n b"}
	if r != want {
		t.Errorf("%+v", r)
	}
	if got.Method != "GET" || got.Host != "example.com" || got.RequestURI != "/p%20q?a=1" || len(got.Header) != 4 || got.Header.Get("User-Agent") != "uwf" {
		t.Errorf("%s %s %s %v", got.Method, got.Host, got.RequestURI, got.Header) // Accept, Accept-Encoding and Connection besides
	}
	if !slices.Equal(w.dialed, []string{public + ":443"}) || w.looked != 1 {
		t.Errorf("dialled %v, looked up %d times", w.dialed, w.looked)
	}
}

// What may not be asked is refused before any name is looked up.
func TestRefusedURLs(t *testing.T) {
	for name, c := range map[string]struct{ url, says string }{
		"http":                   {"http://example.com/", "only https://"},
		"a file":                 {"file:///etc/passwd", "only https://"},
		"no scheme":              {"example.com/a", "only https://"},
		"opaque":                 {"https:example.com", "only https://"},
		"not an URL":             {"https://exa mple.com/", "this is no URL"},
		"a user":                 {"https://me:pw@example.com/", "a user or a password"},
		"a user without words":   {"https://@example.com/", "a user or a password"},
		"another port":           {"https://example.com:8443/", "names a port"},
		"an empty port":          {"https://example.com:/", "names a port"},
		"too long":               {"https://example.com/" + strings.Repeat("a", fetch.MaxURL), "2068 bytes"},
		"too long written out":   {"https://example.com/" + strings.Repeat("é", 700), "bytes written out"},
		"no host":                {"https:///a", "no name of a host"},
		"an address":             {"https://93.184.215.14/", "names an address"},
		"an address in brackets": {"https://[2606:4700::1]/", "names an address"},
		"a mapped address":       {"https://[::ffff:127.0.0.1]/", "names an address"},
		"an address with a zone": {"https://[fe80::1%25eth0]/", "names an address"},
		"one number":             {"https://2130706433/", "names an address"},
		"hexadecimal":            {"https://0x7f.1/", "names an address"},
		"hexadecimal, short":     {"https://example.0x/", "names an address"},
		"octal":                  {"https://0177.0.0.1/", "names an address"},
		"wide digits":            {"https://１２７.０.０.１/", "names an address"},
		"wide dots":              {"https://127。0。0。1/", "names an address"},
		"a dot behind it":        {"https://127.0.0.1./", "names an address"},
		"percent signs":          {"https://%31%32%37.0.0.1/", "this is no URL"},
		"percent signs in names": {"https://example%2ecom%2f.evil.com/", "this is no URL"},
		"a name without a dot":   {"https://localhost/", "no name of a host"},
		"a null byte":            {"https://example.com%00.evil.com/", "this is no URL"},
		"not listed":             {"https://evil.com/", "evil.com is not listed; allowed are: example.com, *.example.com"},
		"a longer name":          {"https://notexample.com/", "not listed"},
		"a name behind it":       {"https://example.com.evil.com/", "not listed"},
		"looks like it":          {"https://еxample.com/", "xn--xample-2of.com is not listed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWeb(t, page("text/plain", "secret"))
			if r := w.get(t, c.url); !strings.Contains(r.Error, c.says) || r.Text != "" || w.looked+len(w.dialed) > 0 {
				t.Errorf("%+v, looked up %d, dialled %v", r, w.looked, w.dialed)
			}
		})
	}
}

// A name of which one address is not public is not dialled.
func TestRefusedAddresses(t *testing.T) {
	for name, address := range map[string]string{
		"loopback": "127.0.0.1", "loopback 6": "::1", "mapped loopback": "::ffff:127.0.0.1", "mapped private": "::ffff:10.0.0.1",
		"private 10": "10.1.2.3", "private 172": "172.31.255.255", "private 192": "192.168.0.1", "CGNAT": "100.64.0.1", "CGNAT's end": "100.127.255.255",
		"link-local, metadata": "169.254.169.254", "link-local 6": "fe80::1", "link-local 6 with zone": "fe80::1%eth0", "public with zone": "2606:4700::1%eth0", "ULA": "fd00:ec2::254", "site-local": "fec0::1",
		"this network": "0.0.0.0", "unspecified 6": "::", "multicast": "224.0.0.1", "multicast 6": "ff02::1", "broadcast": "255.255.255.255", "reserved": "240.0.0.1",
		"IETF": "192.0.0.8", "documentation 1": "192.0.2.1", "documentation 2": "198.51.100.1", "documentation 3": "203.0.113.1", "documentation 6": "2001:db8::1", "new documentation 6": "3fff::1",
		"benchmarks": "198.19.255.255", "6to4 relay": "192.88.99.1", "6to4 of loopback": "2002:7f00:1::", "Teredo": "2001:0:7f00:1::", "NAT64 of loopback": "64:ff9b::7f00:1", "local NAT64": "64:ff9b:1::a00:1",
		"IPv4-compatible": "::7f00:1", "translated": "::ffff:0:7f00:1", "discard": "100::1", "segment routing": "5f00::1",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWeb(t, page("text/plain", "secret"))
			for _, all := range [][]string{{address}, {public, address}} {
				w.names["example.com"] = all
				if r := w.get(t, "https://example.com/"); !strings.Contains(r.Error, "not on the public internet") || len(w.dialed) > 0 {
					t.Errorf("%v: %+v, dialled %v", all, r, w.dialed)
				}
			}
		})
	}
	w := newWeb(t, page("text/plain", "hello"))
	w.names["example.com"] = []string{"2606:4700::1", "::ffff:" + public}
	if r := w.get(t, "https://example.com/"); r.Text != "hello" || w.dialed[0] != public+":443" {
		t.Errorf("%+v %v", r, w.dialed)
	}
	delete(w.names, "example.com")
	if r := w.get(t, "https://example.com/"); !strings.Contains(r.Error, "can't be resolved") {
		t.Errorf("%+v", r)
	}
}

// A name that leads somewhere else the next time is dialled where it was checked, and
// checked again when it is asked again.
func TestRebinding(t *testing.T) {
	w := newWeb(t, func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, "/again", http.StatusFound) })
	inner := w.o.Resolve
	w.o.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
		out, err := inner(ctx, host)
		w.names[host] = []string{"127.0.0.1"}
		return out, err
	}
	r := w.get(t, "https://example.com/")
	if !strings.Contains(r.Error, "127.0.0.1, which is not on the public internet") || !slices.Equal(w.dialed, []string{public + ":443"}) {
		t.Errorf("%+v, dialled %v", r, w.dialed)
	}
}

// Each redirection goes through all rules again.
func TestRedirections(t *testing.T) {
	for name, c := range map[string]struct{ to, says string }{
		"to loopback":      {"https://127.0.0.1/", "names an address"},
		"to http":          {"http://example.com/", "only https://"},
		"to another host":  {"https://evil.com/", "not listed"},
		"to a private one": {"https://in.example.com/", "10.0.0.1, which is not on the public"},
		"to a port":        {"https://example.com:22/", "names a port"},
		"to a user":        {"//a:b@example.com/", "a user or a password"},
		"in a circle":      {"/", "redirects for the 6th time"},
		"to no URL":        {"https://%zz/", "this is no URL"},
		"to a long one":    {"/" + strings.Repeat("a", fetch.MaxURL), "more than the 2048"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			w := newWeb(t, func(rw http.ResponseWriter, r *http.Request) {
				asked++
				rw.Header().Set("Location", c.to)
				rw.WriteHeader(http.StatusMovedPermanently)
			})
			w.names["in.example.com"] = []string{"10.0.0.1"}
			if r := w.get(t, "https://example.com/"); !strings.Contains(r.Error, c.says) || asked > 6 || name != "in a circle" && asked != 1 {
				t.Errorf("%+v after %d requests", r, asked)
			}
		})
	}
	w := newWeb(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/there" {
			page("text/plain", "found "+r.Header.Get("Referer")+r.Header.Get("Cookie"))(rw, r)
			return
		}
		rw.Header().Set("Set-Cookie", "a=b; Path=/")
		http.Redirect(rw, r, "https://www.example.com/there#x", http.StatusSeeOther)
	})
	w.names["www.example.com"] = []string{public}
	if r := w.get(t, "https://example.com/"); r.Text != "found " || r.URL != "https://www.example.com/there" {
		t.Errorf("%+v", r)
	}
}

// What comes is bounded text, or refused by what it is.
func TestAnswers(t *testing.T) {
	bomb := func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/plain")
		rw.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(rw)
		for range 64 { // 64 MiB; whoever stops reading ends it
			if _, err := z.Write(bytes.Repeat([]byte("a"), 1<<20)); err != nil {
				return
			}
		}
		_ = z.Close() // the reader is gone
	}
	for name, c := range map[string]struct {
		h         http.HandlerFunc
		text, err string
		cut       bool
	}{
		"empty":        {page("text/plain", ""), "", "", false},
		"JSON":         {page("application/ld+json", `{"a":"<b>"}`), `{"a":"<b>"}`, "", false},
		"latin-1":      {page("text/plain; charset=ISO-8859-1", "caf\xe9"), "café", "", false},
		"broken UTF-8": {page("text/plain; charset=utf-8", "a\xffb"), "a\ufffdb", "", false},
		"not found":    {http.NotFound, "404 page not found\n", "", false},
		"Japanese":     {page("text/plain; charset=Shift_JIS", "\x93\xfa\x96\x7b"), "日本", "", false},
		"a page's own": {page("text/html", "<meta charset=gbk><p>\xd6\xd0"), "中", "", false},
		"none that is": {page("text/plain; charset=klingon", "caf\xc3\xa9"), "café", "", false},
		"an image":     {page("image/png", "x"), "", "image/png, and only text is taken", false},
		"a program":    {page("application/octet-stream", "x"), "", "application/octet-stream", false},
		"no type":      {page("", "x"), "", "application/octet-stream", false},
		"packed otherwise": {func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Encoding", "br")
			page("text/plain", "x")(rw, r)
		}, "", `packed as "br"`, false},
		"a bomb":             {bomb, strings.Repeat("a", 256<<10-3) + "…", "", true},
		"a bomb of elements": {page("text/html", strings.Repeat("<div>", 200_000)+"deep"), "deep", "", false},
		"huge headers":       {func(rw http.ResponseWriter, r *http.Request) { rw.Header().Set("X", strings.Repeat("a", 1<<20)) }, "", "response headers exceeded", false},
		"cut off": {func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Length", "100")
			page("text/plain", "x")(rw, r)
		}, "", "unexpected EOF", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newWeb(t, c.h).get(t, "https://example.com/")
			if r.Text != c.text || r.Cut != c.cut || (r.Error != "") != (c.err != "") || !strings.Contains(r.Error, c.err) {
				t.Errorf("%.200v", r)
			}
		})
	}
}

func TestUntrustedCertificate(t *testing.T) {
	w := newWeb(t, page("text/plain", "secret"))
	w.names["www.evil.example.com"] = []string{public}
	inner := w.o.TLS
	w.o.TLS = nil // the system's
	if r := w.get(t, "https://example.com/"); !strings.Contains(r.Error, "certificate") || r.Text != "" {
		t.Errorf("%+v", r)
	}
	w.o.TLS, w.o.Hosts, w.names["other.org"] = inner, []string{fetchAny}, []string{public}
	if r := w.get(t, "https://other.org/"); !strings.Contains(r.Error, "certificate is valid for") {
		t.Errorf("%+v", r)
	}
}

const fetchAny = "*"

// Whoever sends a byte now and then is left when the time is over.
func TestSlowServer(t *testing.T) {
	began, over := make(chan struct{}), make(chan struct{})
	w := newWeb(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/plain")
		_, _ = fmt.Fprint(rw, "a")
		_ = http.NewResponseController(rw).Flush() // it is there
		close(began)
		<-r.Context().Done()
		close(over)
	})
	w.o.Limit = func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		go func() { <-began; cancel(errors.New("it took too long")) }()
		return ctx, func() { cancel(nil) }
	}
	if r := w.get(t, "https://example.com/"); r.Error != "fetch example.com: it took too long" {
		t.Errorf("%+v", r)
	}
	<-over
}

// A proxy would look the name up itself.
func TestProxy(t *testing.T) {
	w := newWeb(t, page("text/plain", "x"))
	w.o.Proxy = func(r *http.Request) (*url.URL, error) {
		if r.URL.Host == "example.com" {
			return url.Parse("http://proxy:3128")
		}
		return nil, nil
	}
	if r := w.get(t, "https://example.com/"); !strings.Contains(r.Error, "NO_PROXY") || w.looked > 0 {
		t.Errorf("%+v", r)
	}
	w.names["www.example.com"] = []string{public}
	if r := w.get(t, "https://www.example.com/"); r.Text != "x" {
		t.Errorf("%+v", r)
	}
}

func TestQuestions(t *testing.T) {
	for name, q := range map[string]string{"nothing": "", "no JSON": "url", "no URL": "{}", "unknown": `{"url":"https://example.com","headers":{}}`, "twice": `{"url":"a"}{"url":"b"}`} {
		reply := fetch.New(fetch.Options{}).AnswerSide(t.Context(), []byte(q), keepNothing)
		if reply.Status != http.StatusBadRequest || !strings.Contains(string(reply.Body), "ask with a JSON object") {
			t.Errorf("%s: %d %s", name, reply.Status, reply.Body)
		}
	}
	var _ gateway.Side = fetch.New(fetch.Options{})
}

func FuzzReadHTML(f *testing.F) {
	for _, s := range []string{"<p>a<pre> b</pre>", "<script>", "<svg><p>x</svg>y", "<h1><h9>", "\x00<", "<!--", "<li><li>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := fetch.ReadHTML(s); len(got) > 8*len(s)+64 {
			t.Errorf("%d bytes become %d", len(s), len(got))
		}
	})
}

func FuzzCheckURL(f *testing.F) {
	for _, s := range []string{"https://example.com/a?b#c", "https://ex%61mple.com", "https://１.example.com", "https://[::1]/", "//a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := fetch.CheckURL(nil, s)
		if err != nil {
			return
		}
		if u.Scheme != "https" || u.User != nil || u.Fragment != "" || u.Port() != "" || len(u.String()) > fetch.MaxURL {
			t.Errorf("%q is let through as %s", s, u)
		}
		if again, err := fetch.CheckURL(nil, u.String()); err != nil || again.String() != u.String() {
			t.Errorf("%q is let through as %s, and that as %v, %v", s, u, again, err)
		}
	})
}

// What was fetched while recording is what a replay answers, without any connection. What was
// not recorded is an error that says so.
func TestRecordAndReplay(t *testing.T) {
	file := filepath.Join(t.TempDir(), "c.jsonl")
	keep := func(s string) (string, error) { return strings.ReplaceAll(s, "hidden", "[redacted]"), nil }
	asked := 0
	w := newWeb(t, func(rw http.ResponseWriter, r *http.Request) {
		asked++
		page("text/plain", fmt.Sprintf("page %d, hidden", asked))(rw, r)
	})
	model := httptest.NewServer(page("application/json", `{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}`))
	defer model.Close()
	const chat = `{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"fetch_url"}}]}`
	run := func(o gateway.Options, urls ...string) (out []string) {
		var mu sync.Mutex
		var calls []gateway.Call
		o.OnCall = func(c gateway.Call) { mu.Lock(); defer mu.Unlock(); calls = append(calls, c) }
		o.Sides = map[string]gateway.Side{fetch.Path: fetch.New(w.o)}
		g, err := gateway.Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		env := g.AccessEnv()
		base, key := strings.TrimPrefix(env[0], gateway.EnvURL+"="), strings.TrimPrefix(env[1], gateway.EnvKey+"=")
		out = append(out, post(t, base+"/v1/chat/completions", key, chat))
		for _, u := range urls {
			out = append(out, post(t, base+fetch.Path, key, `{"url": "`+u+`"}`))
		}
		if got := post(t, base+fetch.Path, "wrong", `{}`); !strings.HasPrefix(got, "401") {
			t.Errorf("without the key: %s", got)
		}
		if len(calls) != 1+len(urls) || calls[1].Side != "example.com" && o.Replay == nil || calls[1].Path != fetch.Path || (calls[1].Err != nil) {
			t.Errorf("%+v", calls)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		return out
	}
	rec, err := cassette.NewRecorder(file, cassette.RecorderOptions{Step: 1, Role: "r", Redact: keep})
	if err != nil {
		t.Fatal(err)
	}
	urls := []string{"https://example.com/a", "https://example.com/a", "https://evil.com/"}
	live := run(gateway.Options{Record: rec, Models: []gateway.Model{{Name: "m", Provider: gateway.Provider{Name: "p", BaseURL: model.URL}}}}, urls...)
	if !strings.Contains(live[2], "page 2, hidden") || !strings.Contains(live[3], "not listed") {
		t.Errorf("%q", live)
	}
	c, err := cassette.Load(file)
	if err != nil || !c.OffersTool("r", fetch.Tool) || !slices.Equal(c.AsidePaths("r"), []string{fetch.Path}) || len(c.AsidePaths("x")) > 0 {
		t.Fatalf("%+v %v", c, err)
	}
	played := run(gateway.Options{Replay: c.NewPlayer(cassette.PlayerOptions{Step: 1, Role: "r", Redact: keep})}, append(urls, urls[0], "https://example.com/b")...)
	for i, want := range append(slices.Clone(live[1:]), live[2]) {
		if want = strings.ReplaceAll(want, "hidden", "[redacted]"); played[i+1] != want {
			t.Errorf("replayed %s instead of %s", played[i+1], want)
		}
	}
	if last := played[len(played)-1]; !strings.HasPrefix(last, "502") || !strings.Contains(last, "was not recorded; record it again") {
		t.Errorf("%s", last)
	}
	if asked != 2 {
		t.Errorf("the server was asked %d times", asked)
	}
}

// post is the status and the body of an answer.
func post(t *testing.T, to, key, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%d %s", resp.StatusCode, b)
}
