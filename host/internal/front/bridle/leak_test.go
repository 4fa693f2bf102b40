package bridle

import (
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }
