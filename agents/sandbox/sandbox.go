package sandbox

// Mode says how much has to be enforced.
type Mode string

// The modes.
const (
	// Off: agents run as this process's user, with all its rights.
	Off Mode = "off"
	// Auto: whatever the machine can do, and at least another user or Landlock.
	Auto Mode = "auto"
	// Require: all of it, or the agent isn't run.
	Require Mode = "require"
)

// Network says what an agent may reach.
type Network string

// The networks.
const (
	Open        Network = "open"    // everything
	GatewayOnly Network = "gateway" // the model gateway's port, and nothing else
)

// AgentName is the user that agents run as where uwf is root and that user exists.
const AgentName = "uwf-agent"

// AgentID is the number of the user and the group that agents run as where there
// is no such user. It lies where no distribution assigns numbers.
const AgentID = 60_999
