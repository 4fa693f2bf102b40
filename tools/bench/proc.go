package bench

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc/PID/stat: USER_HZ is 100 on every
// architecture that Go knows.
const tick = 10 * time.Millisecond

// cpuTime is the processor time that a process has used, in user and system
// mode; false where /proc does not tell.
func cpuTime(pid int) (time.Duration, bool) {
	if pid <= 0 {
		return 0, false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]) // from field 3 on
	if len(fields) < 13 {
		return 0, false
	}
	user, err1 := strconv.Atoi(string(fields[11]))
	system, err2 := strconv.Atoi(string(fields[12]))
	return time.Duration(user+system) * tick, err1 == nil && err2 == nil
}

// Memory is what a process holds, in bytes; 0 = not known here.
type Memory struct {
	RSS int64 `json:"rss"`           // resident
	PSS int64 `json:"pss,omitempty"` // resident, shared pages counted in part
}

func memoryOf(pid int) Memory {
	return Memory{
		RSS: kilobytes(fmt.Sprintf("/proc/%d/status", pid), "VmRSS:"),
		PSS: kilobytes(fmt.Sprintf("/proc/%d/smaps_rollup", pid), "Pss:"),
	}
}

// kilobytes reads a line such as "VmRSS: 1234 kB" as bytes.
func kilobytes(path, name string) int64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	scan := bufio.NewScanner(bytes.NewReader(b))
	for scan.Scan() {
		if f := strings.Fields(scan.Text()); len(f) == 3 && f[0] == name {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n << 10
		}
	}
	return 0
}
