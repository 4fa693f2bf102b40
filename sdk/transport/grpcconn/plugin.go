// Package grpcconn carries frames through the gRPC stream of a plugin that
// hashicorp/go-plugin has started, for both ends. It is apart from package
// transport, so that a program which only opens a WebSocket links no gRPC.
package grpcconn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/pontoon-bridge/pontoon/sdk/transport"
	"github.com/pontoon-bridge/pontoon/sdk/transport/pb"
)

// What host and plugin must agree on before they talk. docs/plugins.md has it
// all for authors in any language.
const (
	PluginVersion = 1        // of pontoon.bridge.v1; the key of PluginSets
	PluginName    = "bridge" // the one thing that go-plugin dispenses
	healthService = "plugin" // whose health go-plugin's hosts ask for
)

// Handshake is go-plugin's, for both ends. The cookie is no secret: it only
// tells a program that the host started it from one that a person did.
func Handshake() plugin.HandshakeConfig {
	return plugin.HandshakeConfig{ProtocolVersion: PluginVersion, MagicCookieKey: transport.CookieKey, MagicCookieValue: transport.CookieValue}
}

// PluginSets are the versions that this code speaks, for go-plugin. What
// Dispense(PluginName) gives the host is a *Plugin.
func PluginSets() map[int]plugin.PluginSet {
	return map[int]plugin.PluginSet{PluginVersion: {PluginName: bridgePlugin{}}}
}

// bridgePlugin is the glue that go-plugin wants.
type bridgePlugin struct{ plugin.NetRPCUnsupportedPlugin }

var _ plugin.GRPCPlugin = bridgePlugin{}

// GRPCServer implements plugin.GRPCPlugin for who serves by go-plugin: we don't.
func (bridgePlugin) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("served by Server alone")
}

func (bridgePlugin) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return &Plugin{pb.NewBridgeClient(c), grpc_health_v1.NewHealthClient(c)}, nil
}

// DialOptions bound what the host takes from a plugin: the default is 2 GiB.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage))}
}

// Plugin is a started plugin, as its host has it.
type Plugin struct {
	bridge pb.BridgeClient
	health grpc_health_v1.HealthClient
}

// ConfigError is a plugin that can't work with its configuration.
type ConfigError struct{ Reason string }

func (e *ConfigError) Error() string { return "refused its configuration: " + e.Reason }

// maxConfigReason bounds what a plugin says of its configuration.
const maxConfigReason = 1 << 10

// Configure hands over what the operator wrote; config is a JSON object or nil.
// An error is a *ConfigError if the plugin can't work with it.
func (p *Plugin) Configure(ctx context.Context, channel string, config []byte, hostVersion string) error {
	_, err := p.bridge.Configure(ctx, &pb.ConfigureRequest{Channel: channel, Config: config, HostVersion: hostVersion})
	switch status.Code(err) {
	case codes.OK:
		return nil
	case codes.InvalidArgument:
		return &ConfigError{printable(status.Convert(err).Message())}
	default:
		return fmt.Errorf("configure: %s", printable(status.Convert(err).Message()))
	}
}

// printable is what a plugin said, as one bounded line.
func printable(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), maxConfigReason)], "")
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// Ping asks whether the plugin serves.
func (p *Plugin) Ping(ctx context.Context) error {
	got, err := p.health.Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: healthService})
	if err != nil {
		return fmt.Errorf("%s", printable(status.Convert(err).Message()))
	}
	if got.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		return fmt.Errorf("answered %s, expected %s", got.Status, grpc_health_v1.HealthCheckResponse_SERVING)
	}
	return nil
}

// Attach opens a stream. ctx bounds the opening, not the stream's life.
func (p *Plugin) Attach(ctx context.Context) (*Stream, error) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cancel)
	half, err := p.bridge.Attach(life)
	if opened := stop(); err == nil && !opened {
		err = context.Cause(ctx)
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("open stream: %w", err)
	}
	s := newStream(half, cancel)
	s.ask = p.Ping
	return s, nil
}
