package clitest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"

	"github.com/rogpeppe/go-internal/testscript"
)

// fakeProvider VARIABLE KEY [MODEL]... runs a provider of models on loopback and
// sets a variable to its address. It takes one key and knows some models.
func serveModels(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: provider VARIABLE KEY [MODEL]...")
	}
	models := map[string]bool{}
	list := []map[string]string{}
	for _, m := range args[2:] {
		models[m] = true
		list = append(list, map[string]string{"id": m})
	}
	say := func(w http.ResponseWriter, status int, v any) {
		w.WriteHeader(status)
		// Who doesn't listen any more has what he wanted.
		_ = json.NewEncoder(w).Encode(v)
	}
	problem := func(message, code string) any {
		return map[string]any{"error": map[string]any{"message": message, "code": code}}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, map[string]any{"data": list}) })
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		var req struct{ Model string }
		body, err := io.ReadAll(r.Body)
		switch {
		case err != nil || json.Unmarshal(body, &req) != nil:
			say(w, http.StatusBadRequest, problem("no JSON", ""))
		case r.Header.Get("Authorization") != "Bearer "+args[1]:
			say(w, http.StatusUnauthorized, problem("Incorrect API key provided: "+r.Header.Get("Authorization"), "invalid_api_key"))
		case !models[req.Model]:
			say(w, http.StatusNotFound, problem("The model `"+req.Model+"` does not exist", "model_not_found"))
		default:
			say(w, http.StatusOK, map[string]any{"choices": []any{map[string]any{"message": map[string]any{"content": "ok"}, "finish_reason": "stop"}}})
		}
	})
	s := httptest.NewServer(mux)
	ts.Defer(s.Close)
	ts.Setenv(args[0], s.URL)
}
