package gateway

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/internal/outage"
)

// BenchmarkRequest sends a conversation of an agent to a provider: directly, through Go's reverse
// proxy and through the gateway.
func BenchmarkRequest(b *testing.B) {
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, messageBody)
	}))
	defer provider.Close()
	to, err := url.Parse(provider.URL)
	if err != nil {
		b.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, FlushInterval: -1})
	defer proxy.Close()
	g, err := Start(b.Context(), Options{Outages: outage.Policy{}, Models: []Model{{Alias: "main", Name: "m",
		Price: &Price{Input: 1, Output: 10}, Provider: Provider{Name: "test", API: Anthropic, BaseURL: provider.URL, Key: providerKey}}}})
	if err != nil {
		b.Fatal(err)
	}
	defer g.Close()

	for _, size := range []int{2 << 10, 200 << 10, 2 << 20} {
		body := conversationOf(size)
		for _, way := range []struct{ name, url string }{{"direct", provider.URL}, {"proxy", proxy.URL}, {"gateway", g.URL()}} {
			b.Run(fmt.Sprintf("KB=%d/%s", size>>10, way.name), func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					sendRequest(b, way.url+"/v1/messages", g.key, body)
				}
			})
		}
	}
}

func sendRequest(b *testing.B, address, key, body string) {
	req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("X-Api-Key", key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Fatalf("%d %s %v", resp.StatusCode, answer, err)
	}
}

// conversationOf is a request of about that many bytes: turns that read files of code.
func conversationOf(size int) string {
	var body strings.Builder
	body.WriteString(`{"model":"main","max_tokens":1000,"system":"You are a developer.","tools":[{"name":"read_file","description":"Read a file.",` +
		`"input_schema":{"type":"object","properties":{"path":{"type":"string"}}}}],"messages":[{"role":"user","content":"Fix the tests."}`)
	line := "\tif err := store.Put(ctx, \"threads/%d\", node); err != nil { // see https://example.com/<%d>\n\t\treturn err\n"
	for turn := 0; body.Len() < size; turn++ {
		var code strings.Builder
		for i := 0; i < 40 && body.Len()+code.Len() < size; i++ {
			fmt.Fprintf(&code, line, turn, i)
		}
		fmt.Fprintf(&body, `,{"role":"assistant","content":[{"type":"tool_use","id":"c%d","name":"read_file","input":{"path":"store/%d.go"}}]}`, turn, turn)
		fmt.Fprintf(&body, `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d","content":[{"type":"text","text":%s}]}]}`, turn, strconv.Quote(code.String()))
	}
	body.WriteString("]}")
	return body.String()
}
