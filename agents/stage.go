package agents

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strconv"
	"time"

	"github.com/united-workforce/uwf/gitcas/node"
	"github.com/united-workforce/uwf/gitcas/record"
	"github.com/united-workforce/uwf/internal/regular"
)

// Stage is where an agent puts its nodes: the folder that UWF_STAGE names. What is
// put there is kept even if the agent is killed afterwards.
type Stage struct {
	root  *os.Root
	known node.Getter
	now   func() time.Time
	own   node.Map
}

// OpenStage opens a stage. Known finds the schemas that are not uwf's own; it is
// usually the agent's Context. Close the stage after use.
func OpenStage(dir string, known node.Getter, now func() time.Time) (*Stage, error) {
	if dir == "" {
		return nil, ErrNoContext
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("opening the agent's stage: %w", err)
	}
	own := node.Map{}
	maps.Copy(own, node.Builtin())
	maps.Copy(own, record.Schemas())
	return &Stage{root: root, known: known, now: now, own: own}, nil
}

// Close releases the folder.
func (s *Stage) Close() error { return s.root.Close() }

// Get finds a staged node, one of uwf's own schemas, or what is known besides.
func (s *Stage) Get(h node.Hash) (node.Node, error) {
	if n, ok := s.own[h]; ok {
		return n, nil
	}
	_, n, _, err := readStaged(s.root, string(h)+".json", maxContextFile)
	if err == nil {
		return n, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return node.Node{}, err
	}
	if s.known == nil {
		return node.Node{}, fmt.Errorf("node %s: %w", h, node.ErrNotFound)
	}
	return s.known.Get(h)
}

// refusedFile counts the answers that were refused. Names that begin with a dot
// are no nodes.
const refusedFile = ".refused"

// Refused notes that an answer could not be taken and returns how many that makes
// in this run. Agents that are no Go programs commit by a process of its own for
// each answer: the stage is all that these share.
func (s *Stage) Refused() (int, error) {
	n := 0
	b, err := regular.Read(s.root, refusedFile, 20)
	if err == nil {
		// What can't be read counts from nothing: it only delays the last resort.
		n, _ = strconv.Atoi(string(b))
	} else if !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("counting refused answers: %w", err)
	}
	n = max(n, 0) + 1
	if err := s.root.WriteFile(refusedFile, []byte(strconv.Itoa(n)), 0o644); err != nil {
		return 0, fmt.Errorf("counting refused answers: %w", err)
	}
	return n, nil
}

// Put checks a payload against its schema and stages it. The hash it returns is a
// handle: uwf seals the node later, and its hash may then be another.
func (s *Stage) Put(typ node.Hash, payload any) (node.Hash, error) {
	n, h, err := node.New(typ, payload, s.now())
	if err != nil {
		return "", fmt.Errorf("staging a node of type %s: %w", typ, err)
	}
	return h, s.putNode(n, h)
}

// PutStep stages a StepNode.
func (s *Stage) PutStep(step record.Step) (node.Hash, error) {
	n, h, err := step.Node(s.now())
	if err != nil {
		return "", fmt.Errorf("staging the step: %w", err)
	}
	return h, s.putNode(n, h)
}

func (s *Stage) putNode(n node.Node, h node.Hash) error {
	if err := node.Check(s, n); err != nil {
		return fmt.Errorf("staging node %s: %w", h, err)
	}
	b, err := node.EncodeFile(n)
	if err != nil {
		return fmt.Errorf("staging node %s: %w", h, err)
	}
	// Written under another name first, so that a killed agent leaves no half node.
	temp := "." + string(h)
	if err := s.root.WriteFile(temp, b, 0o644); err != nil {
		return fmt.Errorf("staging node %s: %w", h, err)
	}
	if err := s.root.Rename(temp, string(h)+".json"); err != nil {
		return fmt.Errorf("staging node %s: %w", h, err)
	}
	return nil
}
