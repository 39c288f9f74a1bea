package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The profile of a policy, to the letter: what is added to it is looked at.
func TestSeatbeltProfile(t *testing.T) {
	p := policy{Read: []string{"/usr", `/Users/x/a "b" \c(deny default)`}, Write: []string{"/private/tmp/ws", "/private/tmp/é 1;"}}
	rules := `(allow file-read* file-map-executable
  (subpath "` + strings.Join(macPlaces[:], "\")\n  (subpath \"") + `")
  (subpath "/usr")
  (subpath "/Users/x/a \"b\" \\c(deny default)"))
(allow file-read* file-write* file-map-executable network-bind network-inbound network-outbound
  (subpath "/private/tmp/ws")
  (subpath "/private/tmp/é 1;"))
`
	if got, want := seatbeltProfile(p), seatbeltBase+rules+seatbeltOpen; got != want {
		t.Errorf("open:\n%s\nwant\n%s", got, want)
	}
	p.Gateway, p.Ports = true, []uint16{8080, 443}
	want := seatbeltBase + rules + "(allow network-outbound (remote tcp \"localhost:8080\"))\n(allow network-outbound (remote tcp \"localhost:443\"))\n"
	if got := seatbeltProfile(p); got != want {
		t.Errorf("gateway:\n%s\nwant\n%s", got, want)
	}
	// A rule that names no place would be for all of them.
	if got := seatbeltProfile(policy{Gateway: true, Write: []string{"/", "x\x00"}}); strings.Contains(got, "file-write* ") || strings.Contains(got, "network-") {
		t.Errorf("no places:\n%s", got)
	}
	for _, forbidden := range []string{"com.apple.SecurityServer", "com.apple.securityd", "appleevent", "lsopen", "(allow default)", "mach-priv-task-port", "file-read* (subpath \"/\")"} {
		if got := seatbeltProfile(p); strings.Contains(got, forbidden) {
			t.Errorf("the profile allows %s", forbidden)
		}
	}
}

// A hostile place can't leave its string, or is left out.
func TestSeatbeltQuotes(t *testing.T) {
	for place, want := range map[string]string{
		"/plain":                      `"/plain"`,
		`/a")(allow default)("`:       `"/a\")(allow default)(\""`,
		`/a\`:                         `"/a\\"`,
		`/a\")`:                       `"/a\\\")"`,
		"/a\n(allow default)":         "",
		"/a\r":                        "",
		"/a\x00b":                     "",
		"/a\u0085":                    "",
		"/a\xff":                      "",
		"/":                           "",
		"":                            "",
		"relative":                    "",
		"/ends in a comment ; or #|x": `"/ends in a comment ; or #|x"`,
	} {
		if got, ok := quoteSeatbelt(place); got != want || ok != (want != "") {
			t.Errorf("%q: %s, %t, want %s", place, got, ok, want)
		}
	}
}

// On macOS another program confines, by a profile of what this run may do.
func TestSeatbeltCell(t *testing.T) {
	dir := resolvePath(t.TempDir())
	run := Run{Workspace: filepath.Join(dir, "ws"), Base: filepath.Join(dir, "run"), Context: filepath.Join(dir, "run/context"), Stage: filepath.Join(dir, "run/stage"), Argv: []string{"/bin/sh"}, Ports: []uint16{7}}
	for _, d := range []string{run.Workspace, run.Base, run.Context, run.Stage} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(run.Workspace, link); err != nil {
		t.Fatal(err)
	}
	run.Workspace = link
	self, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	report := Report{System: "darwin", Seatbelt: true}
	s := New(Options{Mode: Require, Network: GatewayOnly, Self: []string{self}, Report: &report, Environ: []string{"HOME=" + dir}})
	c, err := s.Enter(run)
	if err != nil {
		t.Fatal(err)
	}
	env, err := c.Confined([]string{"A=b"})
	if err != nil || !slices.Equal(env, []string{"A=b"}) {
		t.Errorf("environment %q, %v", env, err)
	}
	if len(c.Argv) != 4 || c.Argv[0] != seatbeltProgram || c.Argv[1] != "-p" || c.Argv[3] != "/bin/sh" {
		t.Fatalf("%q", c.Argv)
	}
	for _, want := range []string{"(subpath \"" + filepath.Join(dir, "ws") + "\")", "(subpath \"" + filepath.Join(dir, "run/home") + "\")", `"localhost:7"`} {
		if !strings.Contains(c.Argv[2], want) {
			t.Errorf("%s is not in the profile:\n%s", want, c.Argv[2])
		}
	}
	if strings.Contains(c.Argv[2], link) || strings.Contains(c.Argv[2], "(subpath \""+dir+"\")") {
		t.Errorf("the profile:\n%s", c.Argv[2])
	}
	if confined, network := s.Summary(); confined != "confined (files, processes)" || network != GatewayOnly {
		t.Errorf("%s, %s", confined, network)
	}
}
