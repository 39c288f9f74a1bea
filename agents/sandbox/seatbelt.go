package sandbox

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// seatbeltProgram starts a program in a sandbox of macOS.
const seatbeltProgram = "/usr/bin/sandbox-exec"

// macPlaces are what every program of macOS may need to read, besides what it has in common
// with other systems. The keychains of the system lie beside them.
var macPlaces = [...]string{
	"/System", "/Library/Apple", "/Library/Developer", "/Library/Frameworks", "/Library/Java", "/Library/Perl", "/Library/Preferences/com.apple.networkd.plist",
	"/Library/Ruby", "/Applications/Xcode.app", "/private/var/db/dyld", "/private/var/db/timezone", "/private/var/select", "/private/var/db/xcode_select_link",
}

// seatbeltBase is what any agent may do: start programs, end its own, and ask the services
// of the system that know users and certificates. The one with the keychains is none of
// them, nor is any that would start something outside for it.
const seatbeltBase = `(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal process-info* (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow file-read-metadata)
(allow file-read* (literal "/") (subpath "/dev/fd"))
(allow file-read* file-write-data file-ioctl (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom") (literal "/dev/dtracehelper"))
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo") (global-name "com.apple.system.notification_center") (global-name "com.apple.system.logger") (global-name "com.apple.trustd") (global-name "com.apple.trustd.agent"))
`

// seatbeltOpen is an open network: every address, names, and no sockets of other programs.
const seatbeltOpen = `(allow system-socket)
(allow network-outbound (remote ip "*:*") (literal "/private/var/run/mDNSResponder"))
(allow network-bind network-inbound (local ip "*:*"))
(allow mach-lookup (global-name "com.apple.SystemConfiguration.configd") (global-name "com.apple.SystemConfiguration.DNSConfiguration"))
`

// seatbeltProfile is a policy in the language of Seatbelt. Places are without symlinks. One
// that can't be written in it stays closed.
func seatbeltProfile(p policy) string {
	var b strings.Builder
	b.WriteString(seatbeltBase)
	writeRule := func(operations string, places []string) {
		var quoted []string
		for _, place := range places {
			if q, ok := quoteSeatbelt(place); ok {
				quoted = append(quoted, "(subpath "+q+")")
			}
		}
		if len(quoted) > 0 { // a rule without a place is for all of them
			fmt.Fprintf(&b, "(allow %s\n  %s)\n", operations, strings.Join(quoted, "\n  "))
		}
	}
	writeRule("file-read* file-map-executable", slices.Concat(macPlaces[:], p.Read))
	writeRule("file-read* file-write* file-map-executable network-bind network-inbound network-outbound", p.Write)
	if !p.Gateway {
		b.WriteString(seatbeltOpen)
		return b.String()
	}
	for _, port := range p.Ports {
		fmt.Fprintf(&b, "(allow network-outbound (remote tcp \"localhost:%d\"))\n", port)
	}
	return b.String()
}

// quoteSeatbelt writes a place as a string of that language. What has other characters than
// can be seen, or isn't absolute, has no such string.
func quoteSeatbelt(place string) (quoted string, ok bool) {
	if !strings.HasPrefix(place, "/") || place == "/" || !utf8.ValidString(place) || strings.ContainsFunc(place, unicode.IsControl) {
		return "", false
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(place) + `"`, true
}
