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
	"syscall"
	"time"
)

// cpuSplit is the CPU of the proxy under test and the CPUs of all other processes, as lists for taskset. Both are empty if no
// process is pinned: with one CPU, or without taskset.
type cpuSplit struct{ proxy, others string }

// splitCPUs gives one CPU to the proxy and the others to all other processes.
func splitCPUs() (cpuSplit, error) {
	if taskset, _ := exec.LookPath("taskset"); taskset == "" || runtime.NumCPU() < 2 {
		return cpuSplit{}, nil
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return cpuSplit{}, fmt.Errorf("read the CPUs of this process: %w", err)
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
		return cpuSplit{}, nil
	}
	return cpuSplit{proxy: cpus[0], others: strings.Join(cpus[1:], ",")}, nil
}

func (c cpuSplit) String() string {
	if c.proxy == "" {
		return "no process is pinned to a CPU (taskset is missing, or there is only one CPU)"
	}
	return fmt.Sprintf("the proxy under test runs on CPU %s, all other processes on CPU %s", c.proxy, c.others)
}

// pin sets the CPU affinity of all threads of processes, which their children inherit. An empty list changes nothing.
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

// processTree is a process and its descendants, such as nginx's worker.
func processTree(pid int) []int {
	pids := []int{pid}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		children, _ := os.ReadFile(task)
		for field := range strings.FieldsSeq(string(children)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, processTree(child)...)
			}
		}
	}
	return pids
}

// tick is the unit of CPU times in /proc, USER_HZ, which is 100 on Linux.
const tick = time.Second / 100

// cpuTime is the user and system time of processes and of their children that have ended. A process that has ended counts as 0.
func cpuTime(pids []int) (time.Duration, error) {
	var sum time.Duration
	for _, pid := range pids {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) { // ESRCH if it ends meanwhile
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
		}
		// The name, in parentheses, may contain any character; utime, stime, cutime and cstime are the 12th to 15th fields after it.
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(fields) < 15 {
			return 0, errors.New("/proc has no CPU times")
		}
		for _, field := range fields[11:15] {
			ticks, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
			}
			sum += time.Duration(ticks) * tick
		}
	}
	return sum, nil
}

func cpuTimes(processes map[string][]int) (map[string]time.Duration, error) {
	times := make(map[string]time.Duration, len(processes))
	for name, pids := range processes {
		var err error
		if times[name], err = cpuTime(pids); err != nil {
			return nil, err
		}
	}
	return times, nil
}

// machineCPUTime is the time of all CPUs since the start of the machine, and the part of it that was not idle. Time stolen by
// the host counts as busy.
func machineCPUTime() (all, busy time.Duration, err error) {
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
		if n >= 8 { // user includes guest
			break
		}
		all += time.Duration(ticks) * tick
		if n != 3 && n != 4 { // idle and iowait
			busy += time.Duration(ticks) * tick
		}
	}
	return all, busy, nil
}

// resident is the resident set size of a process, from /proc.
func resident(pid int) (int64, error) {
	statm, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0, err
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(statm), &size, &pages); err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	return pages * int64(os.Getpagesize()), nil
}
