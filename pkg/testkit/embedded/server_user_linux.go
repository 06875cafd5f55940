package embedded

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// traverseCapability is a capability of this process that lets another user enter directories closed to it:
// CAP_DAC_READ_SEARCH if root has it, else CAP_DAC_OVERRIDE.
func traverseCapability() (uintptr, bool) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return 0, false
	}
	for _, capability := range []uintptr{unix.CAP_DAC_READ_SEARCH, unix.CAP_DAC_OVERRIDE} {
		if sets[0].Permitted&(1<<capability) != 0 {
			return capability, true
		}
	}
	return 0, false
}

func setAmbientCaps(attr *syscall.SysProcAttr, caps []uintptr) { attr.AmbientCaps = caps }
