package console

import (
	"os"
	"testing"

	"github.com/pontoon-bridge/pontoon/host/internal/browser"
)

func TestMain(m *testing.M) { os.Exit(browser.Main(m)) }
