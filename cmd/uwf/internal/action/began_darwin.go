package action

import (
	"time"

	"golang.org/x/sys/unix"
)

// birthOf is as on Linux.
func birthOf(path string) time.Time {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return time.Time{}
	}
	return time.Unix(st.Btim.Unix())
}
