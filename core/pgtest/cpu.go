package pgtest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// BackendCPU is the CPU time in µs of the backends that are connected to a database, which other load on the machine hardly changes; 0 where
// there is no /proc.
func BackendCPU(tb testing.TB, db database) (used float64) {
	tb.Helper()
	const tick = 10_000 // µs, by USER_HZ
	pids := LookUp[string](tb, db, `SELECT string_agg(pid::text, ' ') FROM pg_stat_activity WHERE datname = current_database()`)
	for pid := range strings.FieldsSeq(pids) {
		stat, err := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		for _, field := range strings.Fields(rest)[11:13] { // utime and stime
			ticks, err := strconv.ParseFloat(field, 64)
			if err != nil {
				tb.Fatal(err)
			}
			used += ticks * tick
		}
	}
	return used
}
