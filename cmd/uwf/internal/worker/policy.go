package worker

import (
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/cmd/internal/app"
	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/life"
	"github.com/united-workforce/uwf/engine/moderator"
	"github.com/united-workforce/uwf/engine/workflow"
)

// CheckPolicy refuses to start a thread of which a role could not work under the policy, and
// limits of its own that are higher than those of the policy.
func CheckPolicy(w *Worker, def *workflow.Definition, own map[string]float64) error {
	if err := CheckOwnLimits(w.f, own); err != nil {
		return err
	}
	s := settings{w}
	for _, role := range def.RoleNames() {
		name, command, err := s.resolveAgent(def.Name, role, "")
		if err == nil {
			err = s.checkAllowed(def, role, name, command)
		}
		if err != nil {
			return &app.UsageError{Err: fmt.Errorf("role %s: %w", role, err)}
		}
	}
	return nil
}

// CheckOwnLimits refuses limits of a thread that are higher than those of the policy. They would
// do nothing: the lowest counts.
func CheckOwnLimits(f *app.Factory, own map[string]float64) error {
	c, err := f.Config()
	if err == nil {
		err = refuseLooser(c, config.Config{Limits: config.Limits{Limits: life.OwnLimits(own)}})
	}
	return err
}

// refuseLooser refuses what a person chose for this run where the policy allows less.
func refuseLooser(c *config.Config, chosen config.Config) error {
	if err := c.Policies.CheckChosen(chosen); err != nil {
		return &app.UsageError{Err: fmt.Errorf("what the flags say: %w", err)}
	}
	return nil
}

// checkAllowed refuses a role whose agent or model the policy does not allow. name and command are as
// resolveAgent gives them.
func (s settings) checkAllowed(def *workflow.Definition, role, name, command string) error {
	c := s.w.config
	a, err := c.ParseAgent(command)
	if err == nil {
		err = c.Policies.CheckAgent(a)
	}
	if err != nil {
		return err
	}
	if s.asksModel(name) {
		if _, err := c.ResolveModel(def.Name, role); errors.As(err, new(*config.PolicyError)) {
			return err
		}
	}
	return nil
}

// tellHeld tells once what files and a definition ask for, and the policy holds.
func (s settings) tellHeld(def *workflow.Definition) {
	c := s.w.config
	if s.w.f.Job == nil { // a job says so at its beginning
		for _, held := range c.Policies.Held() {
			s.w.noticeOnce(held)
		}
	}
	if def.Limits != nil {
		if err := c.Policies.CheckChosen(config.Config{Limits: config.Limits{Limits: moderator.Limits(*def.Limits)}}); err != nil {
			s.w.noticeOnce("the workflow " + def.Name + " asks for " + err.Error() + "; the lowest counts")
		}
	}
}
