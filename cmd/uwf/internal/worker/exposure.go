package worker

import (
	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/redact"
)

// refuseExposure refuses to start agents that could read secrets out of this
// process's environment.
func (w *Worker) refuseExposure() error {
	if w.f.Exposed == nil || w.isTrusted() {
		return nil
	}
	found := redact.FromEnv(w.f.Environ)
	if len(found) == 0 {
		return nil
	}
	return app.Usagef("agents could read %s out of the environment of this process (%w): keep secrets in ~/.uwf/.env instead, or set sandbox: off if you trust the agents with them",
		found[0].Name, w.f.Exposed)
}
