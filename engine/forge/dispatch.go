package forge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"unicode/utf8"
)

// What a dispatch can carry.
const (
	MaxInputs      = 25
	maxInputLength = 65535 // characters of all names and values
)

// DispatchWorkflow starts a workflow. It is made again where nobody answered: a second run for the
// same step ends at once, and without one the thread stands still.
func (c *client) DispatchWorkflow(ctx context.Context, workflow, ref string, inputs map[string]string) error {
	do := fmt.Sprintf("dispatch %s on %s", workflow, ref)
	if err := checkInputs(do, inputs); err != nil {
		return err
	}
	body := map[string]any{"ref": ref}
	if len(inputs) > 0 {
		body["inputs"] = inputs
	}
	_, err := c.makeCall(ctx, request{do: do, method: http.MethodPost, path: "/actions/workflows/" + url.PathEscape(workflow) + "/dispatches", body: body, safe: true}, nil)
	return err
}

func checkInputs(do string, inputs map[string]string) error {
	n := 0
	for k, v := range inputs {
		n += utf8.RuneCountInString(k) + utf8.RuneCountInString(v)
	}
	switch {
	case len(inputs) > MaxInputs:
		return &CallError{Do: do, Kind: ErrInvalid, Message: fmt.Sprintf("%d inputs, of which %d are allowed", len(inputs), MaxInputs)}
	case n > maxInputLength:
		return &CallError{Do: do, Kind: ErrInvalid, Message: fmt.Sprintf("the inputs have %d characters, of which %d are allowed", n, maxInputLength)}
	}
	return nil
}

// DispatchRepository sends a repository_dispatch event. Gitea has none: ErrNotFound.
func (c *client) DispatchRepository(ctx context.Context, eventType string, payload map[string]string) error {
	body := map[string]any{"event_type": eventType}
	if len(payload) > 0 {
		body["client_payload"] = payload
	}
	_, err := c.makeCall(ctx, request{do: "send the event " + eventType, method: http.MethodPost, path: "/dispatches", body: body, safe: true}, nil)
	return err
}
