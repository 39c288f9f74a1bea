package transport

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestDateOf: the first answer tells the time, also one that refuses or leads elsewhere.
func TestDateOf(t *testing.T) {
	const date = "Sun, 01 Mar 2026 12:00:00 GMT"
	answer := func(code int, date string) *httptest.Server {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodHead || r.URL.Path != "/" || r.Header.Get("Authorization") != "" {
				t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
			}
			w.Header()["Date"] = []string{date}
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(code)
		}))
		t.Cleanup(s.Close)
		return s
	}
	for _, code := range []int{200, 302, 404, 503} {
		s := answer(code, date)
		at, err := dateOf(t.Context(), s.Client(), s.URL+"/")
		if err != nil || !at.Equal(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)) {
			t.Errorf("%d: %s, %v", code, at, err)
		}
	}
	s := answer(200, "noon")
	if at, err := dateOf(t.Context(), s.Client(), s.URL+"/"); err == nil {
		t.Errorf("a Date that is none was read as %s", at)
	}
	s.Close()
	if at, err := dateOf(context.Background(), http.DefaultClient, s.URL+"/"); err == nil {
		t.Errorf("nobody answered, and it is %s", at)
	}
}
