package time

import (
	"syscall"
	"unsafe"
)

// clockOffset is the error of the wall clock in seconds. It is read from a file, an int64 in the machine's byte order, which may
// change while the program runs. The monotonic clock is not changed. Without a file name the offset is 0.
var clockOffset = func() *int64 {
	path, ok := syscall.Getenv("CLOCK_OFFSET_FILE")
	if !ok {
		return new(int64)
	}
	file, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic("open " + path + ": " + err.Error())
	}
	mapped, err := syscall.Mmap(file, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("map " + path + ": " + err.Error())
	}
	return (*int64)(unsafe.Pointer(&mapped[0]))
}()
