package bridge_test

import (
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }
