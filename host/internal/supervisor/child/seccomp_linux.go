package child

import (
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock does not look at everything by which a process reaches others of its
// user, nor at all ways to a TCP port. What can be told by a system call's number and
// plain arguments is refused here.

// refused are system calls that look into other processes or at the whole machine.
// io_uring would do system calls that this filter does not see.
var refused = []uint32{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	unix.SYS_IO_URING_SETUP,
}

// ownOnly are system calls that change a process's limits or priority, by the
// argument that names the process: 0 = itself.
var ownOnly = map[uint32]int{
	unix.SYS_PRLIMIT64: 0, unix.SYS_SETPRIORITY: 1, unix.SYS_IOPRIO_SET: 1,
	unix.SYS_SCHED_SETAFFINITY: 0, unix.SYS_SCHED_SETATTR: 0, unix.SYS_SCHED_SETPARAM: 0, unix.SYS_SCHED_SETSCHEDULER: 0,
}

// fastOpen are system calls that connect and send at once, by the argument with
// their flags: Landlock does not see it.
var fastOpen = map[uint32]int{unix.SYS_SENDTO: 3, unix.SYS_SENDMSG: 2, unix.SYS_SENDMMSG: 3}

// The layout of what a filter sees (struct seccomp_data of linux/seccomp.h).
const (
	numberAt = 0
	archAt   = 4
	argsAt   = 16
	// x32 begins the numbers of amd64's other interface, which nobody uses.
	x32 = 0x40000000
)

// filter is a program for the kernel (seccomp(2)).
type filter []unix.SockFilter

func step(code uint16, k uint32) unix.SockFilter { return unix.SockFilter{Code: code, K: k} }

// jump skips yes steps if the loaded value compares with k, else no steps.
func jump(compare uint16, k uint32, yes, no int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | compare | unix.BPF_K, K: k, Jt: uint8(yes), Jf: uint8(no)}
}

// load loads 32 bits of what the filter sees.
func load(at uint32) unix.SockFilter { return step(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, at) }

// argument loads the lower half of an argument; both machines below are little-endian.
func argument(n int) unix.SockFilter { return load(argsAt + 8*uint32(n)) }

func fail(no unix.Errno) unix.SockFilter {
	return step(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ERRNO|uint32(no))
}

func allow() unix.SockFilter { return step(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ALLOW) }

// on runs steps for one system call. They must end with a verdict.
func (f filter) on(number uint32, steps ...unix.SockFilter) filter {
	return append(append(f, jump(unix.BPF_JEQ, number, 0, len(steps))), steps...)
}

// oneOf goes on behind itself if the loaded value is among these, else fails.
func oneOf(no unix.Errno, values ...uint32) []unix.SockFilter {
	var steps []unix.SockFilter
	for i, v := range values {
		steps = append(steps, jump(unix.BPF_JEQ, v, len(values)-i, 0))
	}
	return append(steps, fail(no))
}

// archs are the machines that there is a filter for, as the kernel calls them.
var archs = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// filters reports whether there is a filter for this machine.
var filters = archs[runtime.GOARCH] != 0

// newFilter makes the filter of a sandbox.
func newFilter(anyPort bool) filter {
	arch := archs[runtime.GOARCH]
	f := filter{
		load(archAt), jump(unix.BPF_JEQ, arch, 1, 0), fail(unix.ENOSYS), // a program for another kind of machine
		load(numberAt), jump(unix.BPF_JGE, x32, 0, 1), fail(unix.ENOSYS),
	}
	for _, number := range refused {
		f = f.on(number, fail(unix.EPERM))
	}
	for number, arg := range ownOnly {
		f = f.on(number, argument(arg), jump(unix.BPF_JEQ, 0, 1, 0), fail(unix.EPERM), allow())
	}
	socket := slices.Concat([]unix.SockFilter{argument(0)}, oneOf(unix.EAFNOSUPPORT, unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK))
	if !anyPort {
		for number, arg := range fastOpen {
			f = f.on(number, argument(arg), jump(unix.BPF_JSET, unix.MSG_FASTOPEN, 0, 1), fail(unix.EPERM), allow())
		}
		// Landlock sees TCP alone, which is not what multipath TCP, SCTP and others are.
		socket = slices.Concat(socket,
			[]unix.SockFilter{jump(unix.BPF_JEQ, unix.AF_UNIX, 0, 1), allow(), jump(unix.BPF_JEQ, unix.AF_NETLINK, 0, 1), allow(), argument(2)},
			oneOf(unix.EPROTONOSUPPORT, 0, unix.IPPROTO_TCP, unix.IPPROTO_UDP, unix.IPPROTO_ICMP, unix.IPPROTO_ICMPV6),
			[]unix.SockFilter{argument(1), step(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, 0xf)}, // without SOCK_CLOEXEC and such
			oneOf(unix.ESOCKTNOSUPPORT, unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW))
	}
	f = f.on(unix.SYS_SOCKET, append(socket, allow())...)
	return append(f, allow())
}

// install sets the filter for this thread, and what it becomes. no_new_privs must be set.
func (f filter) install() error {
	program := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0) //nolint:gosec // G103: how the kernel takes it
	runtime.KeepAlive(&program)
	return err
}
