package sandbox

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/internal/lists"
)

// helperName is the command of this binary that confines itself and becomes an
// agent. It is none that people call.
const helperName = "sandbox-exec"

// policyName is the variable that holds the policy as JSON. The helper takes it
// out of the environment.
const policyName = "UWF_SANDBOX_POLICY"

// laterPrefix stands before the names of the agent's variables until the helper has
// confined itself. Some make a program load libraries that the agent may have written
// (LD_PRELOAD, LD_LIBRARY_PATH), others change how its runtime works.
const laterPrefix = "UWF_SANDBOX_LATER_"

// keep, as a user or a group, is the one that is there.
const keep = -1

const (
	// ownProcesses is how many processes and threads an agent's own user may have.
	ownProcesses = 4096
	// bounded, as a number of processes, is what the machine runs now, and
	// ownProcesses on top.
	bounded = -1
)

// policy is what the helper does to itself.
type policy struct {
	UID       int      `json:"uid"` // keep, 0 (without capabilities) or another user
	GID       int      `json:"gid"`
	Processes int      `json:"processes,omitempty"` // 0: no limit
	ABI       int      `json:"abi"`                 // of Landlock; 0: none
	Read      []string `json:"read"`                // with what is below them; missing ones are left out
	Write     []string `json:"write"`
	Terminals bool     `json:"terminals,omitempty"` // pseudo terminals of its own
	Users     string   `json:"users,omitempty"`     // file to mount over usersFile; empty: none
	Shm       bool     `json:"-"`                   // shmFolder is open, see separateMounts
	Gateway   bool     `json:"gateway,omitempty"`   // only Ports can be reached
	Ports     []uint16 `json:"ports,omitempty"`
	Asks      bool     `json:"asks,omitempty"` // its TCP sockets are made by this process's parent, see runAnswered
	Filter    bool     `json:"filter"`         // system calls are filtered
	CloseUnix bool     `json:"closeUnix,omitempty"`
}

// helperEnviron is what the helper's environment is made of: the policy, and an agent's own
// environment, of which nothing takes effect yet.
func (p policy) helperEnviron(env []string) ([]string, error) {
	b, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	later := lists.Map(env, func(kv string) string { return laterPrefix + kv })
	return append([]string{policyName + "=" + string(b)}, later...), nil
}

// takePolicy takes the policy out of the helper's environment, and gives the agent's.
// What others have added since is the agent's as well.
func takePolicy(env []string) (policy, []string, error) {
	var p policy
	var rest []string
	text, found := "", false
	for _, kv := range env {
		if v, ok := strings.CutPrefix(kv, policyName+"="); ok {
			text, found = v, true
			continue
		}
		rest = append(rest, strings.TrimPrefix(kv, laterPrefix))
	}
	if !found {
		return p, nil, fmt.Errorf("%s is not set: only uwf itself calls this", policyName)
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, nil, fmt.Errorf("read %s: %w", policyName, err)
	}
	return p, rest, nil
}
