package extract_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/united-workforce/uwf/engine/extract"
)

func TestSuspension(t *testing.T) {
	tests := []struct {
		name, text string
		reason     string // empty: it asks for nobody
		err        error
	}{
		{"plain", "---\n$status: $SUSPEND\nreason: Which colour?\n---\n", "Which colour?", nil},
		{"quoted", "---\n\"$status\": \"$SUSPEND\"\nreason: 'Which: colour?'\n---\nMore.", "Which: colour?", nil},
		{"JSON", `{"$status": "$SUSPEND", "reason": "Which?"}`, "Which?", nil},
		{"prose before, colon in the reason", "I am stuck.\n\n---\n$status: $SUSPEND\nreason: One thing: which colour?\n---\n", "One thing: which colour?", nil},
		{"a field of the role besides", "---\n$status: $SUSPEND\nplan: none\nreason: Why?\n---\n", "Why?", nil},
		{"status without a dollar", "---\nstatus: $SUSPEND\nreason: Why?\n---\n", "Why?", nil},
		{"a number as the reason", "---\n$status: $SUSPEND\nreason: 7\n---\n", "7", nil},
		{"the reason under it", "---\n$status: $SUSPEND\n---\nWhich colour?\n", "Which colour?", nil},
		{"no reason", "---\n$status: $SUSPEND\nreason: ''\n---\n", "", extract.ErrInvalid},
		{"another status", "---\n$status: done\nreason: Why?\n---\n", "", nil},
		{"another word", "---\n$status: $SUSPENDED\nreason: Why?\n---\n", "", nil},
		{"in prose alone", "I would answer `$status: $SUSPEND`.", "", nil},
		{"in the body", "---\n$status: done\n---\n---\n$status: $SUSPEND\nreason: x\n---\n", "", nil},
		{"nothing", "", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, asks, err := extract.Suspension(tt.text)
			if asks != (tt.reason != "" || tt.err != nil) || !errors.Is(err, tt.err) {
				t.Fatalf("asks %v, %v", asks, err)
			}
			if tt.reason != "" && (r.Status != "$SUSPEND" || len(r.Output) != 2 || r.Output["$status"] != "$SUSPEND" || r.Output["reason"] != tt.reason) {
				t.Errorf("%+v", r)
			}
		})
	}
	r, asks, err := extract.Suspension("---\n$status: $SUSPEND\n---\n" + strings.Repeat("long ", 10_000))
	if reason, _ := r.Output["reason"].(string); !asks || err != nil || len(reason) > 5000 {
		t.Errorf("a long body: %v, %v, %d bytes", asks, err, len(reason))
	}
}
