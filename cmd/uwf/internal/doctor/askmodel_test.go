package doctor

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/config"
)

// TestAskModel: the model is asked as agents ask it.
func TestAskModel(t *testing.T) {
	for wire, want := range map[string]string{"messages": "/v1/messages", "chat": "/v1/chat/completions"} {
		asked := ""
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = r.URL.Path
			http.Error(w, "{}", http.StatusNotFound)
		}))
		var o Options
		AskModel(&o, &app.Factory{}, &config.Config{
			DefaultModel: "m", Models: map[string]config.Model{"m": {Provider: "p", Name: "n"}},
			Providers: map[string]config.Provider{"p": {Kind: config.Anthropic, BaseURL: s.URL, Wires: []string{wire}}},
		})
		if o.Model == nil {
			t.Fatal(o.NoModel)
		}
		if err := o.Model(t.Context()); err == nil || asked != want {
			t.Errorf("asked by %s, want %s (%v)", asked, want, err)
		}
		s.Close()
	}
}
