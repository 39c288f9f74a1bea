package app

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/config"
	"github.com/united-workforce/uwf/engine/consent"
	"github.com/united-workforce/uwf/internal/lists"
	"github.com/united-workforce/uwf/internal/text"
)

// TrustNone, as the value of --trust, has a run go without what the repository wants.
const TrustNone = "none"

// Consents are where this user's consents are kept.
func Consents(f *Factory) (consent.Store, error) {
	root, err := f.StorageRoot()
	if err != nil {
		return consent.Store{}, err
	}
	return consent.Store{Dir: filepath.Join(root, "trust")}, nil
}

// consentsApart are the consents, unless they would lie in the repository itself: what is
// there may be the repository's own.
func consentsApart(f *Factory) (consent.Store, error) {
	store, err := Consents(f)
	if own := f.RepoRoot(); err == nil && own != "" && Within(store.Dir, own) {
		return store, Usagef("consents are kept in %s, which lies in the repository %s: let UWF_HOME name a folder elsewhere", store.Dir, own)
	}
	return store, err
}

// addConsent lets the settings know what the user has consented to.
func addConsent(f *Factory, s *config.Sources) {
	if f.Job != nil { // its repository is trusted as it is
		return
	}
	root := realPath(f.RepoRoot())
	s.OwnRemote = func(address string) bool { return isOwnRemote(f, address) }
	s.Fingerprint = func(word string) string { return hashOwnFile(f.Path(word), root) }
	if store, err := consentsApart(f); err == nil {
		s.ConsentDir = store.Dir
		s.Consented = func(demands []consent.Demand) bool { return store.Has(root, demands) }
		s.Allowed = func(d consent.Demand) bool { return store.Allows(root, d) }
	}
}

// hashOwnFile is the SHA-256 of a regular file of the repository.
func hashOwnFile(path, root string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || !Within(path, root) {
		return ""
	}
	file, err := os.Open(path)
	if err != nil {
		return "unreadable" // which differs from whatever was consented to
	}
	sum := sha256.New()
	_, err = io.Copy(sum, file)
	if err = errors.Join(err, file.Close()); err != nil {
		return "unreadable"
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// HasConsent says whether the user allowed this repository a demand, whatever else they
// allowed it beside that.
func HasConsent(f *Factory, d consent.Demand) bool {
	store, err := consentsApart(f)
	return err == nil && store.Allows(realPath(f.RepoRoot()), d)
}

// SettleTrust asks the person whether the repository may have what its settings want, where
// nobody has consented to that yet. Without a consent, what the repository wants counts as
// unsaid. It asks once.
func SettleTrust(f *Factory) error {
	_, err := f.settled.findOnce(func() (bool, error) { return true, settleTrust(f) })
	return err
}

func settleTrust(f *Factory) error {
	for _, s := range f.Trust {
		if s != TrustNone && !consent.IsDigest(s) {
			return Usagef("--trust %s: it is neither %s nor a SHA-256 of 64 digits, as uwf trust show prints it", text.ShellWord(s), TrustNone)
		}
	}
	c, err := f.Config()
	if err != nil {
		return err
	}
	if err := SettleDemands(f, c.Unconsented()); err != nil {
		return err
	}
	f.config = once[*config.Config]{} // what was consented to counts now
	_, err = f.Config()
	return err
}

// SettleDemands is SettleTrust for demands that are none of the settings.
func SettleDemands(f *Factory, demands []consent.Demand) error {
	digest := consent.Digest(demands)
	switch {
	case len(demands) == 0 || f.Job != nil: // a job's repository is trusted as it is
		return nil
	case slices.Contains(f.Trust, digest):
		return KeepConsent(f, demands)
	case slices.Contains(f.Trust, TrustNone):
		f.Notes().Printf("note: goes without what this repository wants of this machine: %s\n", text.Cut(pathsOf(demands), 300))
		return nil
	case !f.IO.CanAsk():
		return Usagef("this repository wants more of this machine than you have consented to, and nobody is there to ask:\n%s\nread it, and say --trust %s to consent (uwf run, uwf thread start and uwf thread step take it; kept for this repository until it changes), or --trust %s to go without",
			describeDemands(f, demands), digest, TrustNone)
	}
	f.Notes().Printf("This repository wants of this machine:\n%s\n", describeDemands(f, demands))
	answer, err := f.Choose("Do you consent? It counts until one of these changes. [y, N: go without]", false)
	if err != nil {
		return err
	}
	if answer == Yes {
		return KeepConsent(f, demands)
	}
	f.Notes().Println("It goes without them.")
	return nil
}

func pathsOf(demands []consent.Demand) string {
	return strings.Join(lists.Map(demands, func(d consent.Demand) string { return d.Path }), ", ")
}

// describeDemands shows demands, as what changed where others were consented to before.
func describeDemands(f *Factory, demands []consent.Demand) string {
	lines := DemandChanges(f, demands)
	if len(lines) == 0 {
		lines = consent.Diff(demands, demands)
	}
	return f.CleanMessage(strings.Join(lines, "\n"))
}

// DemandChanges are what changed in a repository's demands since the person last consented to
// such, as consent.Diff has it; empty: they never did.
func DemandChanges(f *Factory, demands []consent.Demand) []string {
	store, err := consentsApart(f)
	if err != nil {
		return nil
	}
	known := slices.DeleteFunc(store.Known(realPath(f.RepoRoot())), func(k consent.Demand) bool {
		return !slices.ContainsFunc(demands, func(d consent.Demand) bool { return k.Path == d.Path })
	})
	if len(known) == 0 {
		return nil
	}
	return lists.Map(consent.Diff(known, demands), f.CleanMessage)
}

// KeepConsent keeps the person's consent.
func KeepConsent(f *Factory, demands []consent.Demand) error {
	store, err := consentsApart(f)
	if err != nil {
		return err
	}
	return store.Keep(realPath(f.RepoRoot()), demands, f.Now())
}
