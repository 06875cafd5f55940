//go:build !linux

package embedded

func removeSharedMemory(*owner, string) {}
