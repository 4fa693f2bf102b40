package agent

import (
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
	"github.com/pontoon-bridge/pontoon/sdk/transport/toxic"
)

func TestMain(m *testing.M) { leaks.Main(m, toxic.Left()...) }
