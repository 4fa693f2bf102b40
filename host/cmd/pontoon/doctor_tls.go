package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	neturl "net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/pontoon-bridge/pontoon/host/internal/netguard"
)

// tlsFiles are what serve would be given.
type tlsFiles struct{ cert, key, publicURL string }

func (f *tlsFiles) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.cert, "tls-cert", "", "certificate file to look at")
	cmd.Flags().StringVar(&f.key, "tls-key", "", "key file of the certificate")
	cmd.Flags().StringVar(&f.publicURL, "public-url", "", "url at which others reach the host, which the certificate must fit")
}

// checkTLS looks at the certificate that serve would be given, if any.
func checkTLS(f *tlsFiles, now time.Time) []finding {
	if f.cert == "" && f.key == "" {
		return nil
	}
	if f.cert == "" || f.key == "" {
		return []finding{{checkFail, "certificate", "--tls-cert and --tls-key: found one, expected both"}}
	}
	c, err := netguard.LoadCertificate(f.cert, f.key, nil)
	if err != nil {
		return []finding{{checkFail, "certificate", err.Error()}}
	}
	return []finding{checkCertificate("certificate", c.Leaf(), f.publicURL, now)}
}

// checkServed looks at the certificate that a host shows at a url.
func checkServed(state *tls.ConnectionState, url string, now time.Time) []finding {
	if state == nil || len(state.PeerCertificates) == 0 {
		return nil
	}
	return []finding{checkCertificate("certificate of the host", state.PeerCertificates[0], url, now)}
}

// checkCertificate says whether a certificate counts now and for a while, and fits
// the url; "" = any.
func checkCertificate(what string, leaf *x509.Certificate, url string, now time.Time) finding {
	ends := leaf.NotAfter.UTC().Format(time.RFC3339)
	switch left := leaf.NotAfter.Sub(now); {
	case left <= 0:
		return finding{checkFail, what, "ended at " + ends}
	case now.Before(leaf.NotBefore):
		return finding{checkFail, what, "does not count before " + leaf.NotBefore.UTC().Format(time.RFC3339) + ": is the clock right?"}
	case left < netguard.EndNotice:
		return finding{checkWarn, what, fmt.Sprintf("ends at %s, in %d days: renew it (a running host takes the new files by itself)", ends, int(left.Hours()/24))}
	}
	if u, err := neturl.Parse(url); url != "" {
		if err != nil || u.Hostname() == "" {
			return finding{checkFail, what, fmt.Sprintf("--public-url: found %q, expected http(s)://HOST[:PORT][/PATH]", url)}
		}
		if err := leaf.VerifyHostname(u.Hostname()); err != nil {
			return finding{checkWarn, what, fmt.Sprintf("is not for %s: %v", u.Hostname(), err)}
		}
	}
	return finding{checkOK, what, "ends at " + ends}
}
