package safehttp

import (
	"encoding/json"
	"fmt"
	"net/netip"
)

// maxNetworks bounds the list of an operator.
const maxNetworks = 64

// Networks are the addresses beside the public ones that an operator allows;
// the zero value allows none. As JSON it is true (loopback, private networks
// and those of a carrier), false, or a list of prefixes such as "10.1.0.0/16".
type Networks struct {
	All  bool
	Only []netip.Prefix
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Networks) UnmarshalJSON(b []byte) error {
	var all bool
	if json.Unmarshal(b, &all) == nil {
		*n = Networks{All: all}
		return nil
	}
	var list []string
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("found %.40s, expected true, false or a list of prefixes such as \"10.1.0.0/16\"", b)
	}
	if len(list) > maxNetworks {
		return fmt.Errorf("found %d prefixes, expected at most %d", len(list), maxNetworks)
	}
	out := Networks{}
	for i, s := range list {
		p, err := netip.ParsePrefix(s)
		if err != nil || p.Masked() != p {
			return fmt.Errorf("[%d]: found %.60q, expected a prefix such as \"10.1.0.0/16\", with nothing behind its bits", i, s)
		}
		out.Only = append(out.Only, p)
	}
	*n = out
	return nil
}

// MarshalJSON implements json.Marshaler.
func (n Networks) MarshalJSON() ([]byte, error) {
	if n.All || len(n.Only) == 0 {
		return json.Marshal(n.All)
	}
	return json.Marshal(n.Only)
}
