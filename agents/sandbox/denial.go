package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/united-workforce/uwf/internal/lazyregexp"
)

// EnvClosedHome is the variable by which a confined agent knows the home of uwf's user, which
// is closed to it, and after it places in there that are never opened; separated as in PATH.
const EnvClosedHome = "UWF_CLOSED_HOME"

// ExplainOwnDenial says which setting would open what an output, in the environment of a
// confined agent (NAME=value), says is denied below the user's home, in /tmp or in /dev/shm: one
// sentence in brackets. Empty: nothing is, or it is better left closed. Outputs are anybody's words.
func ExplainOwnDenial(environ []string, output string) string {
	places := filepath.SplitList(Getenv(environ, EnvClosedHome))
	if len(places) == 0 {
		return ""
	}
	return explainDenial(Options{Environ: []string{"HOME=" + places[0]}, Protect: places[1:]}, output)
}

// ExplainDenial is ExplainOwnDenial for what the agent of this run printed. A home that is
// closed to the agents' own user stays so, whatever the settings say.
func (c *Cell) ExplainDenial(output string) string {
	if c.policy.Gateway && usesNetwork.MatchString(output) {
		return "[confine.network: gateway closes this part of the network]"
	}
	if !c.canReach(Getenv(c.o.Environ, "HOME")) {
		return explainShared(c.home, output)
	}
	return explainDenial(c.o, output)
}

// explainShared is explainDenial for places that the whole machine shares, unless home, an
// absolute path, lies in one.
func explainShared(home, output string) string {
	if usesShm.MatchString(output) && denied.MatchString(output) {
		return "[the sandbox closes /dev/shm: confine.write: [/dev/shm] in ~/.uwf/config.yaml opens it]"
	}
	for line := range strings.Lines(output) {
		own := strings.Contains(line, "/tmp/uwf-") || len(home) > 1 && strings.Contains(line, home)
		if !own && inTemp.MatchString(line) && denied.MatchString(line) {
			return "[the sandbox closes /tmp: use the folder that TMPDIR names]"
		}
	}
	return ""
}

// listClosedHome is the value of EnvClosedHome; empty where there is no home.
func (o Options) listClosedHome() string {
	home := Getenv(o.Environ, "HOME")
	if !filepath.IsAbs(home) || resolvePath(home) == "/" {
		return ""
	}
	known := Options{Environ: []string{"HOME=" + home}, nested: o.nested}
	by := known.findDeniedPaths().withCredentials(known, nil).closed
	list := []string{home}
	for _, p := range o.findDeniedPaths().withCredentials(o, nil).closed {
		if isWithin(p, resolvePath(home)) && !slices.Contains(by, p) && !strings.ContainsRune(p, filepath.ListSeparator) {
			list = append(list, p)
		}
	}
	return strings.Join(list, string(filepath.ListSeparator))
}

var (
	// denied is how programs say it; macOS has another word.
	denied = lazyregexp.New(`(?i)permission ?denied|access ?denied|\bEACCES\b|operation not permitted`)
	// usesShm is how programs say that they need shared memory, which lies at the top of /dev/shm.
	usesShm     = lazyregexp.New(`SemLock|_posixshmem|sem_open|shm_open|/dev/shm(/[\w.-]*)?([^/\w.-]|$)`)
	usesNetwork = lazyregexp.New(`(?i)\b(listen|bind|socket|connect)\b.*\b(permission denied|EACCES)\b|\bEACCES\b.*\b(listen|bind|socket|connect)\b`)
	inTemp      = lazyregexp.New(`(^|[^\w.-])(/var)?/tmp/`)
	// plainPath needs no quotes in YAML, and no second look.
	plainPath = lazyregexp.New(`^/[\w./@+-]+$`)
)

func explainDenial(o Options, output string) string {
	home := Getenv(o.Environ, "HOME")
	if !filepath.IsAbs(home) || resolvePath(home) == "/" {
		return explainShared(home, output)
	}
	for line := range strings.Lines(output) {
		if !strings.Contains(line, home+"/") || !denied.MatchString(line) {
			continue
		}
		for _, word := range strings.FieldsFunc(line, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("'\"`:,;()", r) }) {
			if !strings.HasSuffix(word, "..") {
				word = strings.TrimSuffix(word, ".") // a sentence's
			}
			if place := o.findOpenable(word, home); place != "" {
				return fmt.Sprintf("[the sandbox closes %s: confine.read: [%s] in ~/.uwf/config.yaml opens it]", place, place)
			}
		}
	}
	return explainShared(home, output)
}

// findOpenable is the place below the home that a path leads to, if a person may well open
// it: it is there, and neither holds nor is a place of credentials, the home or a folder of
// many programs, nor anybody's settings.
func (o Options) findOpenable(path, home string) string {
	place, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	home = resolvePath(home)
	w := o.findDeniedPaths().withCredentials(o, nil)
	settings := isWithin(place, filepath.Join(home, ".config")) || isWithin(place, filepath.Join(home, "Library"))
	if place == home || !isWithin(place, home) || settings || w.isClosed(place) || w.deniedIn(place) != "" || !plainPath.MatchString(place) {
		return ""
	}
	return place
}
