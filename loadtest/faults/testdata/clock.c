// A library for LD_PRELOAD that moves the wall clock of a C program by the seconds in a file, an int64 in the machine's byte
// order, which may change while the program runs. The monotonic clock stays right. libfaketime does not work with jemalloc,
// which Redis uses: it asks for the time before the library is set up.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *offset;

__attribute__((constructor)) static void map_offset(void) {
	const char *path = getenv("CLOCK_OFFSET_FILE");
	int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (file < 0)
		return;
	void *mapped = mmap(NULL, sizeof *offset, PROT_READ, MAP_SHARED, file, 0);
	if (mapped != MAP_FAILED)
		offset = mapped;
	close(file);
}

static int64_t seconds(void) { return offset ? *offset : 0; }

int clock_gettime(clockid_t clock, struct timespec *now) {
	int failed = syscall(SYS_clock_gettime, clock, now);
	if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		now->tv_sec += seconds();
	return failed;
}

int gettimeofday(struct timeval *now, void *zone) {
	struct timespec exact;
	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &exact))
		return -1;
	now->tv_sec = exact.tv_sec;
	now->tv_usec = exact.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *copy) {
	struct timespec exact;
	if (clock_gettime(CLOCK_REALTIME, &exact))
		return -1;
	if (copy)
		*copy = exact.tv_sec;
	return exact.tv_sec;
}
