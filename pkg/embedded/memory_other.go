//go:build !linux

package embedded

const memoryDir = "/dev/shm"

func roomInMemory() bool { return false }
