package child

import (
	"fmt"
	"slices"
)

// Sandbox is what a program may reach, and how much of it. Its zero value keeps the
// program from nothing but a gain of privileges.
type Sandbox struct {
	On      bool     // as much as the kernel knows of; else files, sockets and processes are those of its user
	Require bool     // refuse to start the program where the kernel knows of too little
	Read    []string // files and directories with all below, absolute, no links: to read and to run
	Write   []string // likewise: to write too
	AnyPort bool     // it may connect to any TCP port
	Connect []uint16 // the ports if not

	Processes int   // and threads; 0 = no limit of its own
	User      *User // nil = the host's
}

// User is whom a program runs as.
type User struct {
	Name     string // for people
	UID, GID int
}

// Strength is how much of what a sandbox asks for the kernel does.
type Strength string

// The strengths.
const (
	Full    Strength = "full"    // all that Sandbox.Require demands
	Partial Strength = "partial" // Landlock is there, but is too old for some of it
	None    Strength = "none"    // the system has no Landlock
	Off     Strength = "off"     // it was not asked for
)

// Held says what holds a started program.
type Held struct {
	LimitBy  string   // what enforces Spec.Memory: "cgroup", "rlimit" or "none"
	Sandbox  Strength // and how much of its sandbox there is
	Landlock int      // the version of the kernel's Landlock that is in use; 0 = none
	Open     []string // what it is not kept from, for people
}

// The versions of Landlock's interface that brought what is used here.
const (
	abiRefer    = 2 // linking and renaming between directories
	abiTruncate = 3
	abiTCP      = 4
	abiIoctl    = 5
	abiScope    = 6 // signals and abstract unix sockets; Linux 6.12
	abiUnix     = 9 // unix sockets by path
	// abiNeeded is what Sandbox.Require demands.
	abiNeeded = abiScope
)

// Strength is that of a kernel with this version of Landlock.
func (s Sandbox) strength(abi int) Strength {
	switch {
	case !s.On:
		return Off
	case abi == 0:
		return None
	case abi < abiNeeded:
		return Partial
	}
	return Full
}

// open lists what a kernel with this version of Landlock leaves open.
func (s Sandbox) open(abi int) []string {
	if !s.On {
		abi = 0
	}
	var out []string
	for what, is := range map[string]bool{
		"files and devices that its user may open":         abi == 0,
		"truncating files":                                 abi > 0 && abi < abiTruncate,
		"TCP ports that are not named":                     abi < abiTCP && !s.AnyPort,
		"commands to devices":                              abi > 0 && abi < abiIoctl,
		"signals to processes of its user":                 abi < abiScope,
		"abstract unix sockets":                            abi < abiScope,
		"unix sockets that its user may open by path":      abi < abiUnix,
		"limits and priorities of processes of its user":   !s.On || !filters,
		"modes and times of files of its user":             s.User == nil,
		"memory of processes of its user (but the host's)": abi == 0 && (!s.On || !filters),
	} {
		if is {
			out = append(out, what)
		}
	}
	slices.Sort(out)
	return out
}

// check says why a program that demands its sandbox can't have it.
func (s Sandbox) check(abi int) error {
	if s.Require && abi < abiNeeded {
		return fmt.Errorf("sandbox: require: found Landlock of version %d in this kernel, expected %d or newer (Linux 6.12, with landlock in CONFIG_LSM or lsm=)", abi, abiNeeded)
	}
	return nil
}

// Check reports whether a program with this sandbox may be started here.
func (s Sandbox) Check() error { return s.check(landlockABI()) }

// Available is what a sandbox that is on amounts to on this machine, for `doctor`,
// and what it leaves open.
func Available() (strength Strength, landlock int, open []string) {
	abi, s := landlockABI(), Sandbox{On: true}
	return s.strength(abi), abi, s.open(abi)
}
