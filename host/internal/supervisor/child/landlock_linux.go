package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// landlockABI is the version of Landlock that the running kernel has; 0 = none.
func landlockABI() int {
	abi, err := ll.LandlockGetABIVersion()
	if err != nil || abi < 0 {
		return 0
	}
	return abi
}

// configs are what each version of Landlock can keep a program from.
var configs = [...]landlock.Config{
	1: landlock.V1, 2: landlock.V2, 3: landlock.V3, 4: landlock.V4, 5: landlock.V5, 6: landlock.V6, 7: landlock.V7, 8: landlock.V8, 9: landlock.V9,
}

// confine keeps this process, and what it becomes, from all but what the sandbox
// names. It can't be undone. The kernel's version is given, not found out by trial:
// what is said of a sandbox must be what was asked of the kernel.
func confine(s Sandbox, abi int) error {
	if abi == 0 {
		return nil
	}
	c := configs[min(abi, len(configs)-1)]
	c.HandledAccessNet = 0 // any program may listen
	var rules []landlock.Rule
	if !s.AnyPort && abi >= abiTCP {
		c.HandledAccessNet = ll.AccessNetConnectTCP
		for _, port := range s.Connect {
			rules = append(rules, landlock.ConnectTCP(port))
		}
	}
	for _, path := range s.Read {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist): // it went a moment ago
		case err != nil:
			return fmt.Errorf("sandbox: read: %w", err)
		case info.IsDir():
			rules = append(rules, landlock.RODirs(path).IgnoreIfMissing())
		default:
			rules = append(rules, landlock.ROFiles(path).IgnoreIfMissing())
		}
	}
	for _, path := range s.Write {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("sandbox: write: %w", err)
		}
		rule := landlock.RWFiles(path)
		if info.IsDir() {
			rule = landlock.RWDirs(path)
			if abi >= abiRefer {
				rule = rule.WithRefer()
			}
		}
		if abi >= abiUnix {
			rule = rule.WithResolveUnix()
		}
		rules = append(rules, rule)
	}
	if err := c.Restrict(rules...); err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	return nil
}
