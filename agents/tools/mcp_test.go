package tools_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents/tools"
)

// TestServers: tools of MCP servers are offered by a name of their own, and called at the
// gateway. What is no text is named.
func TestServers(t *testing.T) {
	listed := `{"tools":[{"name":"a.b","description":"Does it.","inputSchema":{"type":"object"}}]}`
	results := map[string]string{
		`{"content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}`:                                                                                                  "one\ntwo",
		`{"content":[{"type":"image","data":"AA","mimeType":"image/png"},{"type":"resource_link","uri":"docs://a"},{"type":"resource","resource":{"uri":"docs://b","text":"b"}}]}`: "[left out: image image/png]\n[a link: docs://a]\nb",
		`{"content":[],"structuredContent":{"n":1}}`:                         `{"n":1}`,
		`{"content":[{"type":"text","text":"no such page"}],"isError":true}`: "error: mcp__docs__a_b: no such page",
		`7`: "error: mcp__docs__a_b: what /mcp/docs answers to tools/call can't be read",
		``:  "error: mcp__docs__a_b: MCP server docs: down",
	}
	var result string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Authorization") != "Bearer once" || r.URL.Path != "/mcp/docs" {
			t.Errorf("%v %s", err, r.URL)
		}
		switch asked := string(b); {
		case asked == `{"id":1,"jsonrpc":"2.0","method":"tools/list","params":null}` && listed != "":
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":%s}`, listed)
		case asked == `{"id":1,"jsonrpc":"2.0","method":"tools/call","params":{"arguments":{"q":1},"name":"a.b"}}` && result != "":
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":%s}`, result)
		default:
			_, _ = fmt.Fprint(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"MCP server docs: down"}}`)
		}
	}))
	defer server.Close()
	open := func() *tools.Set {
		s, err := tools.Open(tools.Options{Dir: t.TempDir(), Gateway: tools.Gateway{URL: server.URL, Key: "once"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() }) // nothing was written
		return s
	}
	s := open()
	list := `[{"name":"docs","url":"` + server.URL + `/mcp/docs"}]`
	if err := s.AddServers(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	all := s.Definitions()
	if d := all[len(all)-1]; d.Name != "mcp__docs__a_b" || d.Description != "Does it." || string(d.Parameters) != `{"type":"object"}` {
		t.Errorf("%+v", d)
	}
	for r, want := range results {
		result = r
		got, err := s.Call(t.Context(), "mcp__docs__a_b", `{"q":1}`)
		if err != nil {
			got = "error: " + err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q instead of %q", r, got, want)
		}
	}
	if err := open().AddServers(t.Context(), ""); err != nil {
		t.Error(err)
	}
	listed = ""
	for list, want := range map[string]string{
		list: "MCP server docs: down; mend it, or take it out of mcp in the settings",
		`{`:  "read the list of MCP servers",
		`[{"name":"evil","url":"https://evil.example.com/mcp"}]`: `the MCP server "evil" is not at uwf's gateway`,
	} {
		if err := open().AddServers(t.Context(), list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", list, err)
		}
	}
}
