package transport

import (
	"errors"
	"net/url"
	"strings"
)

// Endpoint is the WebSocket's address for the url of a host that an operator
// gave: of http:// and https:// the path is added, ws:// and wss:// are taken as
// they are if they have one. Its errors don't repeat the url, which may hold a
// secret.
func Endpoint(given, path string) (string, error) {
	u, err := url.Parse(given)
	if err != nil {
		var parse *url.Error
		if errors.As(err, &parse) {
			err = parse.Err
		}
		return "", errors.New("url: can't be read: " + err.Error())
	}
	switch u.Scheme {
	case "http", "https":
		u.Scheme = strings.Replace(u.Scheme, "http", "ws", 1)
		if !strings.HasSuffix(u.Path, path) {
			u = u.JoinPath(path)
		}
	case "ws", "wss":
		if u.Path == "" || u.Path == "/" {
			u = u.JoinPath(path)
		}
	default:
		return "", errors.New("url: expected it to begin with http://, https://, ws:// or wss://")
	}
	if u.Host == "" {
		return "", errors.New("url: found no host name")
	}
	u.Fragment = ""
	return u.String(), nil
}
