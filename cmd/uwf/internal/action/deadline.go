package action

import (
	"time"

	"gopkg.in/yaml.v3"
)

// hostedTime is what a job may take where its workflow doesn't say.
const hostedTime = 6 * time.Hour

// jobTime is how long the forge lets a job run, by its workflow file.
func jobTime(file []byte, job string) time.Duration {
	var flow struct {
		Jobs map[string]struct {
			Minutes yaml.Node `yaml:"timeout-minutes"`
		} `yaml:"jobs"`
	}
	if yaml.Unmarshal(file, &flow) != nil {
		return hostedTime // the forge has read it, so this is our own mistake
	}
	var minutes float64
	if m := flow.Jobs[job].Minutes; m.Decode(&minutes) != nil || minutes <= 0 || minutes > 1e6 {
		return hostedTime // none, or an expression
	}
	return time.Duration(minutes * float64(time.Minute))
}

// jobDeadline is when a job should be over that began a while before now: a tenth of its
// time is left for what came before this step and comes after it.
func jobDeadline(now time.Time, all time.Duration) time.Time { return now.Add(all - all/10) }
