package agent

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/pontoon-bridge/pontoon/sdk/transport/toxic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, toxic.Left()...) }
