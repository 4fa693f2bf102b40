package agui_test

import (
	"net/http"
	"os"
	"testing"

	"github.com/pontoon-bridge/pontoon/sdk/adaptertest/leaks"
)

func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultClient.CloseIdleConnections()
	if code == 0 {
		code = leaks.Code()
	}
	os.Exit(code)
}
