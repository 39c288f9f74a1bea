//go:build !linux

package testmode

const memoryDir = ""

func hasRoom(string) bool { return false }
