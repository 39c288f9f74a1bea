package action

import (
	"time"

	"golang.org/x/sys/unix"
)

// birthOf returns when a file was made, zero if it or the file system doesn't tell.
func birthOf(path string) time.Time {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_BTIME, &st)
	if err != nil || st.Mask&unix.STATX_BTIME == 0 {
		return time.Time{}
	}
	return time.Unix(st.Btime.Sec, int64(st.Btime.Nsec))
}
