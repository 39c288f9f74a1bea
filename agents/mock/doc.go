// Package mock is an agent without a model: it plays a script. It drives any
// workflow in tests and demos, and misbehaves on demand. The script is YAML:
//
//	steps:
//	  - role: developer        # conditions, all optional: the first entry whose
//	    step: 2                #   conditions hold is played. step counts the thread's
//	    visit: 1               #   steps, visit the role's own, attempt the failed
//	    attempt: 1             #   tries at this step; all from 1
//	    output: |              # the answer; of a list, the others go to corrections
//	      ---
//	      $status: done
//	      ---
//	      What was done.
//	    extract: true          # a model may read the output that can't be taken, as for
//	                           #   other agents; without it no model is ever asked
//	    delay: 200ms           # before anything else
//	    write: {src/a.go: "package a\n"}   # files of the workspace
//	    delete: [old.go]
//	    commands: ["go test ./..."]        # by sh -c; a failing one fails the step
//	    usage: {turns: 2, inputTokens: 900, outputTokens: 80, costUsd: 0.01}
//	    stderr: "text"         # printed as it is
//	    stdout: "text"         # printed before the handle
//	    size: 10485760         # bytes that the output is padded to
//	    flood: 10485760        # bytes of noise on stdout
//	    daemon: true           # leave a process behind, in its own session, without environment
//	    stage: {x.json: "{"}   # files put into UWF_STAGE as they are
//	    hang: true             # never end, deaf to SIGTERM
//	    exit: 3                # end with this code and no handle
//	    kill: true             # end by SIGKILL
//	    handle: "XYZ"          # print this instead of the handle; "" prints nothing
//	    as: {role: other, start: HASH, prev: HASH, agent: name}   # a step that lies
//
// A script of the TypeScript uwf has nothing but roles and outputs, and the same role several
// times. It is played in order: the first entry is the thread's first step, and so on; an
// entry of another role than the one whose turn it is, or none, fails the step. Any script
// is played so as --mock-data, which is how that uwf was given one.
//
// An output may be a question to a person: the status that the graph has for it, or
// `$status: $SUSPEND` with a reason where the workflow lets every role ask.
//
// It never calls a model itself and never reads anything but its script and its task.
package mock
