package forge

import (
	"context"
	"encoding/json"
	"errors"
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

// Dispatch starts a workflow. It is made again where nobody answered: a second run for the
// same step ends at once, and without one the thread stands still. The run's id is asked for
// in both flavours' ways; older versions ignore or refuse the question, and answer without one.
func (c *client) Dispatch(ctx context.Context, workflow, ref string, inputs map[string]string) (int64, error) {
	do := fmt.Sprintf("dispatch %s on %s", workflow, ref)
	if err := checkInputs(do, inputs); err != nil {
		return 0, err
	}
	run, err := c.dispatchOnce(ctx, do, workflow, ref, inputs, !c.noRunDetails.Load())
	if e := (*Error)(nil); errors.As(err, &e) && e.Status == http.StatusUnprocessableEntity && mentions(e, "return_run_details") {
		c.noRunDetails.Store(true)
		run, err = c.dispatchOnce(ctx, do, workflow, ref, inputs, false)
	}
	return run, err
}

func (c *client) dispatchOnce(ctx context.Context, do, workflow, ref string, inputs map[string]string, details bool) (int64, error) {
	body := map[string]any{"ref": ref}
	if len(inputs) > 0 {
		body["inputs"] = inputs
	}
	r := request{do: do, method: http.MethodPost, path: "/actions/workflows/" + url.PathEscape(workflow) + "/dispatches", body: body, safe: true}
	switch {
	case details && c.flavour == Gitea:
		r.query = url.Values{"return_run_details": {"true"}}
	case details:
		body["return_run_details"] = true
	}
	a, err := c.makeCall(ctx, r, nil)
	if err != nil || a.status == http.StatusNoContent || len(a.body) == 0 {
		return 0, err
	}
	var made struct {
		Run int64 `json:"workflow_run_id"`
	}
	// An answer that can't be read leaves the id at 0: it was started all the same.
	_ = json.Unmarshal(a.body, &made)
	return made.Run, nil
}

func checkInputs(do string, inputs map[string]string) error {
	n := 0
	for k, v := range inputs {
		n += utf8.RuneCountInString(k) + utf8.RuneCountInString(v)
	}
	switch {
	case len(inputs) > MaxInputs:
		return &Error{Do: do, Kind: ErrInvalid, Message: fmt.Sprintf("%d inputs, of which %d are allowed", len(inputs), MaxInputs)}
	case n > maxInputLength:
		return &Error{Do: do, Kind: ErrInvalid, Message: fmt.Sprintf("the inputs have %d characters, of which %d are allowed", n, maxInputLength)}
	}
	return nil
}

// DispatchRepository sends a repository_dispatch event. Gitea has none: ErrNotFound.
func (c *client) DispatchRepository(ctx context.Context, eventType string, payload map[string]any) error {
	body := map[string]any{"event_type": eventType}
	if len(payload) > 0 {
		body["client_payload"] = payload
	}
	_, err := c.makeCall(ctx, request{do: "send the event " + eventType, method: http.MethodPost, path: "/dispatches", body: body, safe: true}, nil)
	return err
}
