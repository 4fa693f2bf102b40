package hub

import (
	"context"
	"errors"
)

// Stopped reports whether the context of a turn ended because the user said so.
func Stopped(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errStopped) }
