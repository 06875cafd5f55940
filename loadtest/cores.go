package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// cores says which CPUs the proxy under test has to itself and which all else shares, as lists for taskset. Both are empty
// where nothing is pinned: on one CPU, or without taskset.
type cores struct{ proxy, rest string }

// divideCores gives the proxy one CPU and the rest the others.
func divideCores() (cores, error) {
	if taskset, _ := exec.LookPath("taskset"); taskset == "" || runtime.NumCPU() < 2 {
		return cores{}, nil
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return cores{}, fmt.Errorf("read the CPUs of this process: %w", err)
	}
	_, list, _ := strings.Cut(string(status), "Cpus_allowed_list:")
	list, _, _ = strings.Cut(list, "\n")
	var cpus []string
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		var first, last int
		if n, _ := fmt.Sscanf(part, "%d-%d", &first, &last); n == 1 {
			last = first
		}
		for ; first <= last; first++ {
			cpus = append(cpus, strconv.Itoa(first))
		}
	}
	if len(cpus) < 2 {
		return cores{}, nil
	}
	return cores{proxy: cpus[0], rest: strings.Join(cpus[1:], ",")}, nil
}

func (c cores) String() string {
	if c.proxy == "" {
		return "no process is pinned to a CPU (taskset is missing, or there is but one CPU)"
	}
	return fmt.Sprintf("the proxy under test runs on CPU %s, all else on CPU %s", c.proxy, c.rest)
}

// pin moves processes, all their threads and all they start from now on to the CPUs of a list; an empty one changes nothing.
func pin(ctx context.Context, cpus string, pids ...int) error {
	if cpus == "" {
		return nil
	}
	for _, pid := range pids {
		out, err := exec.CommandContext(ctx, "taskset", "-acp", cpus, strconv.Itoa(pid)).CombinedOutput()
		if err != nil {
			return fmt.Errorf("pin process %d to CPU %s: %w: %s", pid, cpus, err, out)
		}
	}
	return nil
}

// family is a process and all that come from it: nginx works in a child of the process that was started.
func family(pid int) []int {
	pids := []int{pid}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		children, _ := os.ReadFile(task)
		for field := range strings.FieldsSeq(string(children)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, family(child)...)
			}
		}
	}
	return pids
}

// tick is the unit of the times in /proc, which Linux fixes for all that it tells programs.
const tick = time.Second / 100

// cpuTime is the user and system time that processes have taken so far. Those that have ended count as nothing.
func cpuTime(pids []int) (time.Duration, error) {
	var sum time.Duration
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
		}
		// The name, in parentheses, may hold anything; utime and stime are the 12th and 13th field after it.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 13 {
			return 0, errors.New("/proc tells no CPU times here")
		}
		for _, field := range fields[11:13] {
			ticks, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
			}
			sum += time.Duration(ticks) * tick
		}
	}
	return sum, nil
}

// machineTime is how long all CPUs together have run so far, and how much of that they were busy, or taken away by a host.
func machineTime() (all, busy time.Duration, err error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, fmt.Errorf("read the CPU times of the machine: %w", err)
	}
	line, _, _ := strings.Cut(strings.TrimPrefix(string(stat), "cpu "), "\n")
	for n, field := range strings.Fields(line) {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, 0, fmt.Errorf("read the CPU times of the machine: %w", err)
		}
		if n >= 8 { // guests are counted among the users
			break
		}
		all += time.Duration(ticks) * tick
		if n != 3 && n != 4 { // idle, and waiting for a disk
			busy += time.Duration(ticks) * tick
		}
	}
	return all, busy, nil
}
