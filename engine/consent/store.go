package consent

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/internal/regular"
	"github.com/united-workforce/uwf/internal/text"
	"github.com/united-workforce/uwf/internal/wholefile"
)

// Consent is what a person allowed a repository.
type Consent struct {
	// Repository is the folder of its working tree, without symbolic links.
	Repository string `json:"repository"`
	// SHA256 is the digest of Demands.
	SHA256  string    `json:"sha256"`
	Demands []Demand  `json:"demands"`
	At      time.Time `json:"at"`
}

// Store keeps consents in a folder, one file each: <repository>.<digest>.json, where the
// first is the beginning of the SHA-256 of its path. The folder need not be there. Several
// processes may use it at once.
type Store struct{ Dir string }

// suffix is how a consent's file ends; one that is being written ends otherwise.
const suffix = ".json"

// maxFile is the largest file of a consent, in bytes: as much as settings may have, as JSON.
const maxFile = 8 << 20

func fileName(repository, digest string) string {
	return prefixOf(repository) + digest + suffix
}

func prefixOf(repository string) string {
	sum := sha256.Sum256([]byte(repository))
	return fmt.Sprintf("%x.", sum[:8])
}

// Has reports whether a repository's demands were consented to as they are. What can't be
// read is no consent.
func (s Store) Has(repository string, demands []Demand) bool {
	_, err := s.readFile(fileName(repository, Digest(demands)))
	return err == nil
}

// Allows reports whether any of a repository's consents has a demand in it.
func (s Store) Allows(repository string, d Demand) bool {
	all, _ := s.listFiles(prefixOf(repository)) // what is damaged is none
	return slices.ContainsFunc(all, func(c Consent) bool { return c.Repository == repository && says(c.Demands, d) })
}

// Keep stores a person's consent.
func (s Store) Keep(repository string, demands []Demand, at time.Time) error {
	c := Consent{Repository: repository, SHA256: Digest(demands), Demands: demands, At: at.UTC().Truncate(time.Second)}
	b, err := json.MarshalIndent(c, "", "  ")
	if err == nil {
		err = s.writeFile(fileName(repository, c.SHA256), append(b, '\n'))
	}
	if err != nil {
		return fmt.Errorf("keep the consent to %s in %s: %w", repository, s.Dir, err)
	}
	return nil
}

// writeFile puts a file there whole.
func (s Store) writeFile(name string, b []byte) error {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	return wholefile.Write(filepath.Join(s.Dir, name), bytes.NewReader(b), 0o600)
}

// DamagedError is a file among the consents that is none.
type DamagedError struct {
	Path string
	Why  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("read the consent %s: %v; it counts for nothing: remove it", e.Path, e.Why)
}

// Unwrap gives what is wrong.
func (e *DamagedError) Unwrap() error { return e.Why }

// readFile reads a consent and checks that it is the one that its name says.
func (s Store) readFile(name string) (c Consent, err error) {
	root, err := os.OpenRoot(s.Dir)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	b, err := regular.Read(root, name, maxFile)
	if err != nil {
		return c, err
	}
	err = text.DecodeJSON(b, &c)
	if err == nil && (c.SHA256 != Digest(c.Demands) || fileName(c.Repository, c.SHA256) != name) {
		err = errors.New("it is not what its name says")
	}
	if err != nil {
		return c, &DamagedError{Path: filepath.Join(s.Dir, name), Why: err}
	}
	return c, nil
}

// List reads all consents, by repository and then from the latest to the oldest. What can't
// be read is in the error, as *[DamagedError]; the rest is returned all the same.
func (s Store) List() ([]Consent, error) { return s.listFiles("") }

// listFiles reads the consents whose files begin with a prefix.
func (s Store) listFiles(prefix string) (out []Consent, err error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the consents: %w", err)
	}
	out = []Consent{}
	var errs []error
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !strings.HasSuffix(e.Name(), suffix) {
			continue
		}
		c, err := s.readFile(e.Name())
		if errors.Is(err, fs.ErrNotExist) { // another process has removed it
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b Consent) int {
		if a.Repository != b.Repository {
			return strings.Compare(a.Repository, b.Repository)
		}
		return b.At.Compare(a.At)
	})
	return out, errors.Join(errs...)
}

// Known are the demands that a repository was ever allowed, of each path the one that was
// allowed last.
func (s Store) Known(repository string) (known []Demand) {
	all, _ := s.listFiles(prefixOf(repository)) // what is damaged is none
	for _, c := range all {
		for _, d := range c.Demands {
			if !slices.ContainsFunc(known, func(k Demand) bool { return k.Path == d.Path }) {
				known = append(known, d)
			}
		}
	}
	return known
}

// Revoke takes a consent back.
func (s Store) Revoke(c Consent) error {
	err := os.Remove(filepath.Join(s.Dir, fileName(c.Repository, c.SHA256)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("revoke the consent to %s: %w", c.Repository, err)
	}
	return nil
}
