package agentcheck

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/united-workforce/uwf/agents/gateway/dialect"
)

// The fake model answers in each dialect, whole and streamed, what a gateway takes for the end.
func TestFakeModel(t *testing.T) {
	for _, tt := range []struct {
		path, body string
		status     int
		stream     bool
	}{
		{"/v1/chat/completions", `{}`, 200, false},
		{"/v1/chat/completions", `{"stream": true}`, 200, true},
		{"/v1/responses", `{}`, 200, false},
		{"/v1/responses", `{"stream": true}`, 200, true},
		{"/v1/messages", `{"stream": false}`, 200, false},
		{"/v1/messages", `{"stream": true}`, 200, true},
		{"/v1beta/models/m:generateContent", `{}`, 200, false},
		{"/v1beta/models/m:streamGenerateContent", `{}`, 200, true},
		{"/v1/embeddings", `{}`, 404, false},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://model.invalid"+tt.path, bytes.NewReader([]byte(tt.body)))
		if err != nil {
			t.Fatal(err)
		}
		res, err := fakeModel{}.RoundTrip(req)
		if err != nil || res.StatusCode != tt.status {
			t.Errorf("%s: %+v %v", tt.path, res, err)
			continue
		}
		b, err := io.ReadAll(res.Body)
		if err := res.Body.Close(); err != nil {
			t.Error(err)
		}
		if err != nil || tt.status != 200 {
			continue
		}
		d, _ := dialect.ForPath(tt.path)
		got, err := readAnswer(d, tt.stream, b)
		if err != nil || got.Text != finalAnswer || got.Finish != dialect.FinishStop {
			t.Errorf("%s: %+v %v: %s", tt.path, got, err, b)
		}
	}
	bad, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://model.invalid/v1/messages", bytes.NewReader([]byte("{")))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := (fakeModel{}).RoundTrip(bad); err == nil {
		t.Errorf("it answers what is no JSON: %v", res.Body.Close())
	}
}

func readAnswer(d dialect.Dialect, stream bool, b []byte) (dialect.Answer, error) {
	if !stream {
		return dialect.ParseAnswer(d, b)
	}
	c, events := dialect.NewCollector(d), dialect.NewEventReader(bytes.NewReader(b), 1<<20)
	for {
		ev, err := events.Next()
		if errors.Is(err, io.EOF) {
			return c.AnswerSoFar(), c.Err()
		}
		if err != nil {
			return dialect.Answer{}, err
		}
		c.Add(ev)
	}
}
