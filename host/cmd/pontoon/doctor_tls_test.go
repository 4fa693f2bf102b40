package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"strings"
	"testing"
	"time"
)

func TestCheckCertificate(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		from, to time.Time
		url      string
		result   string
		says     string
	}{
		"ok":         {now.Add(-day), now.Add(90 * day), "https://bridge.example.org:8443", checkOK, "ends at 2030-04-01"},
		"any name":   {now.Add(-day), now.Add(90 * day), "", checkOK, "ends"},
		"subdomain":  {now.Add(-day), now.Add(90 * day), "https://a.wild.example.org", checkOK, "ends"},
		"soon":       {now.Add(-day), now.Add(13*day + time.Hour), "", checkWarn, "in 13 days"},
		"just not":   {now.Add(-day), now.Add(14*day + time.Hour), "", checkOK, "ends"},
		"over":       {now.Add(-2 * day), now.Add(-day), "", checkFail, "ended"},
		"not yet":    {now.Add(day), now.Add(90 * day), "", checkFail, "clock"},
		"other name": {now.Add(-day), now.Add(90 * day), "https://other.example.org", checkWarn, "is not for other.example.org"},
		"no url":     {now.Add(-day), now.Add(90 * day), "other", checkFail, "--public-url"},
	} {
		tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: c.from, NotAfter: c.to, DNSNames: []string{"bridge.example.org", "*.wild.example.org"}}
		der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &k.PublicKey, k)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		if f := checkCertificate("certificate", leaf, c.url, now); f.Result != c.result || !strings.Contains(f.Detail, c.says) {
			t.Errorf("%s: %+v, expected %s with %q", name, f, c.result, c.says)
		}
	}
}

func TestDoctorOfCertificate(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	h := startHost(t, "--tls-cert", cert, "--tls-key", key)
	r := runCommand(t, append(h.env(), "SSL_CERT_FILE="+cert), "", "doctor", "--tls-cert", cert, "--tls-key", key, "--public-url", h.url)
	for _, want := range []string{"warn\tcertificate\tends at", "warn\tcertificate of the host\tends at"} { // in an hour
		if !strings.Contains(strings.Join(strings.Fields(r.out), "\t"), strings.Join(strings.Fields(want), "\t")) {
			t.Errorf("doctor: %+v, expected %q", r, want)
		}
	}
	if r := runCommand(t, h.env(), "", "doctor", "--tls-cert", cert, "--tls-key", cert); r.code != 1 || !strings.Contains(r.out, "certificate") {
		t.Errorf("doctor: %+v", r)
	}
}
