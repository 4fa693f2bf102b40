//go:build !linux && !darwin

package disk

import "errors"

// diskSpace is not known here: SQLite's own error tells when the disk is full.
func diskSpace(string) (free, total uint64, err error) { return 0, 0, errors.ErrUnsupported }
