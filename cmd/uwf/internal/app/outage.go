package app

import (
	"context"
	"time"

	"github.com/united-workforce/uwf/internal/outage"
)

// Outages says how long servers that are away are waited for, and tells people of it.
func (f *Factory) Outages() outage.Policy {
	p := outage.Policy{Until: f.Until, Tell: f.Waiting, Now: f.Now}
	if f.AtOnce {
		p.Until = time.Unix(1, 0)
	}
	if p.Tell == nil {
		p.Tell = func(w outage.Wait) { f.Notes().Println("waiting:", w) }
	}
	if after := f.After; after != nil {
		p.Sleep = func(ctx context.Context, d time.Duration) error {
			over, stop := after(d)
			defer stop()
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-over:
				return nil
			}
		}
	}
	return p
}
