//go:build !linux

package embedded

const tmpfsDir = "/dev/shm"

func tmpfsHasSpace() bool { return false }
