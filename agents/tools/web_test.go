package tools_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/agents/tools"
)

// TestFetchURL: the tool asks the gateway, with its key, and shows what it says. The
// answers are those of package fetch and of the gateway's own errors.
func TestFetchURL(t *testing.T) {
	for name, c := range map[string]struct {
		status     int
		body, want string
		fails      bool
	}{
		"a page":       {200, `{"url":"https://a.org/x","status":200,"type":"text/html","text":"hello"}`, "[https://a.org/x: status 200, text/html]\nhello", false},
		"cut":          {200, `{"url":"https://a.org/x","status":404,"type":"text/plain","text":"no","cut":true}`, "[https://a.org/x: status 404, text/plain]\nno\n[… the rest is left out …]", false},
		"refused":      {200, `{"error":"the host b.org is not listed"}`, "fetch_url: the host b.org is not listed", true},
		"not recorded": {502, `{"error":"replay /fetch: it was not recorded"}`, "fetch_url: replay /fetch: it was not recorded", true},
		"wrong key":    {401, `{"error":{"message":"the gateway's key is missing or wrong","code":"invalid_api_key"}}`, "fetch_url: the gateway's key is missing or wrong", true},
		"no JSON":      {500, `<html>`, "answers 500 Internal Server Error to /fetch, and what can't be read", true},
		"huge":         {200, `{"text":"` + strings.Repeat("a", 2<<20) + `"}`, "more than 2097152 bytes", true},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/fetch" || r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer once" {
					t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
				}
				w.WriteHeader(c.status)
				_, _ = fmt.Fprint(w, c.body)
			}))
			defer server.Close()
			s, err := tools.Open(tools.Options{Dir: t.TempDir(), Gateway: tools.Gateway{URL: server.URL + "/", Key: "once", Hosts: "a.org"}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }() // nothing was written
			if d := s.Definitions(); !slices.Contains(s.Names(), "fetch_url") || !strings.Contains(d[len(d)-1].Description, "Allowed hosts: a.org.") {
				t.Errorf("%+v", d)
			}
			got, err := s.Call(t.Context(), "fetch_url", `{"url":"https://a.org/x"}`)
			var wrong *tools.CallError
			if c.fails && (!errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want)) || !c.fails && (err != nil || got != c.want) {
				t.Errorf("%.200q, %v", got, err)
			}
		})
	}
	s, err := tools.Open(tools.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }() // nothing was written
	if _, err := s.Call(t.Context(), "fetch_url", `{"url":"https://a.org/"}`); err == nil || !strings.Contains(err.Error(), "no tool") {
		t.Errorf("where no host is listed: %v", err)
	}
}
