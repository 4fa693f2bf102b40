package attach

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestSniff(t *testing.T) {
	for name, c := range map[string]struct{ head, want string }{
		"jpeg":           {"\xFF\xD8\xFF\xE0 jpeg", "image/jpeg"},
		"png":            {pngHead, "image/png"},
		"gif":            {"GIF89a", "image/gif"},
		"webp":           {"RIFF\x10\x00\x00\x00WEBPVP8 ", "image/webp"},
		"webp, odd":      {"RIFF\x10\x00\x00\x00WEBPALPH", "image/webp"},
		"pdf":            {pdfHead, "application/pdf"},
		"zip":            {"PK\x03\x04", "application/zip"},
		"gzip":           {"\x1F\x8B\x08", "application/gzip"},
		"text":           {"hello", "text/plain"},
		"utf-16":         {"\xFF\xFEh\x00i\x00", "text/plain"},
		"binary":         {"\x00\x01\x02", octetStream},
		"wav":            {"RIFF\x10\x00\x00\x00WAVEfmt ", "audio/wav"},
		"avi":            {"RIFF\x10\x00\x00\x00AVI LIST", "video/avi"},
		"ogg opus":       {"OggS\x00\x02 OpusHead  ", "audio/ogg"},
		"ogg theora":     {"OggS\x00\x02 \x80theora  ", "video/ogg"},
		"mp4":            {"\x00\x00\x00\x18ftypisom\x00\x00\x02\x00", "video/mp4"},
		"m4a":            {"\x00\x00\x00\x20ftypM4A \x00\x00\x02\x00", "audio/mp4"},
		"mov":            {"\x00\x00\x00\x14ftypqt  \x00\x00\x02\x00", "video/quicktime"},
		"3gp":            {"\x00\x00\x00\x14ftyp3gp5\x00\x00\x02\x00", "video/3gpp"},
		"heic":           {"\x00\x00\x00\x14ftypheic\x00\x00\x02\x00", "image/heic"},
		"avif":           {"\x00\x00\x00\x14ftypavif\x00\x00\x02\x00", "image/avif"},
		"webm":           {"\x1A\x45\xDF\xA3", "video/webm"},
		"mp3, tagged":    {"ID3\x04", "audio/mpeg"},
		"mp3":            {"\xFF\xFB\x90\x64" + strings.Repeat("\x00", 20), "audio/mpeg"},
		"aac":            {"\xFF\xF1\x50\x80" + strings.Repeat("\x00", 20), "audio/aac"},
		"flac":           {"fLaC\x00\x00\x00\x22\x10\x00\x10\x00", "audio/flac"},
		"amr":            {"#!AMR\n\x3c\x00\x00\x00\x00\x00", "audio/amr"},
		"html":           {"  <!DOCTYPE html><html>", "text/html"},
		"html, in lower": {"<!doctype html>", "text/html"},
		"html, BOM":      {"\xEF\xBB\xBF<html><body>", "text/html"},
		"xml":            {"<?xml version='1.0'?><svg/>", "text/xml"},
		"xml, BOM":       {"\xEF\xBB\xBF <?xml version='1.0'?>", "text/xml"},
		"svg":            {"\n<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"},
		"svg, BOM":       {"\xEF\xBB\xBF<SVG>", "image/svg+xml"},
		"doctype":        {"<!DOCTYPE svg PUBLIC>", "text/xml"},
		"nothing":        {"", "text/plain"},
		"one byte":       {"\xFF", "text/plain"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sniff([]byte(c.head)); got != c.want {
				t.Errorf("found %s, expected %s", got, c.want)
			}
		})
	}
}

func TestSettle(t *testing.T) {
	with := func(more ...string) []string { return append(DefaultTypes(), more...) }
	const svg, html, webm = "<svg/>", "<html><script>", "\x1A\x45\xDF\xA3"
	for name, c := range map[string]struct {
		types             []string
		content, declared string
		want, ext         string // "" = refused
	}{
		"bytes win":          {nil, pngHead, "image/jpeg", "image/png", "png"},
		"declared nothing":   {nil, pngHead, "", "image/png", "png"},
		"declared nonsense":  {nil, pngHead, "???", "image/png", "png"},
		"html":               {nil, html, "text/plain", octetStream, "bin"},
		"html, declared":     {nil, html, "text/html", octetStream, "bin"},
		"html, as png":       {nil, html, "image/png", octetStream, "bin"},
		"html, as video":     {nil, html, "video/mp4", octetStream, "bin"},
		"text as html":       {nil, "text", "text/html; charset=utf-8", octetStream, "bin"},
		"text as xhtml":      {nil, "text", "application/xhtml+xml", octetStream, "bin"},
		"text as js":         {nil, "alert(1)", "text/javascript", octetStream, "bin"},
		"text as JS":         {nil, "alert(1)", "Application/X-JavaScript", octetStream, "bin"},
		"svg":                {nil, svg, "image/svg+xml", octetStream, "bin"},
		"svg, undeclared":    {nil, svg, "", octetStream, "bin"},
		"png as svg":         {nil, pngHead, "image/svg+xml", "image/png", "png"},
		"xml":                {nil, "<?xml version='1.0'?>", "application/xml", octetStream, "bin"},
		"svg, allowed":       {with("image/svg+xml"), svg, "", "image/svg+xml", "svg"},
		"xml is svg":         {with("image/svg+xml"), "<?xml version='1.0'?><svg/>", "image/svg+xml", "image/svg+xml", "svg"},
		"wildcard no svg":    {with("image/*"), svg, "image/svg+xml", octetStream, "bin"},
		"wildcard no html":   {with("text/*"), html, "text/html", octetStream, "bin"},
		"html, allowed":      {with("text/html"), html, "", "text/html", "html"},
		"csv":                {nil, "a,b", "text/csv", "text/plain", "txt"},
		"csv, allowed":       {with("text/csv"), "a,b", "text/csv", "text/csv", "csv"},
		"json, allowed":      {with("application/json"), "{}", "application/json", "application/json", "json"},
		"png as csv":         {with("text/csv"), pngHead, "text/csv", "image/png", "png"},
		"webm is audio":      {nil, webm, "audio/webm", "audio/webm", "weba"},
		"webm is no mp4":     {nil, webm, "audio/mp4", "video/webm", "webm"},
		"unknown audio":      {nil, "\x00\x01", "audio/x-odd", "audio/x-odd", "bin"},
		"unknown image":      {nil, "\x00\x01", "image/png", octetStream, "bin"},
		"text as audio":      {nil, "text", "audio/mpegurl", "text/plain", "txt"},
		"document":           {nil, "PK\x03\x04", "application/vnd.oasis.opendocument.text", "application/zip", "zip"},
		"document, allowed":  {with("application/vnd.oasis.opendocument.text"), "PK\x03\x04", "application/vnd.oasis.opendocument.text", "application/vnd.oasis.opendocument.text", "bin"},
		"errType":            {nil, "\x00\x61\x73\x6D\x01", "image/png", "", ""},
		"errNoOctets":        {[]string{"image/png"}, "\x00\x01", "image/png", "", ""},
		"errNoOctetsForHTML": {[]string{"text/plain"}, html, "text/plain", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t, Options{Types: c.types})
			o, err := h.PutBytes(context.Background(), "o", []byte(c.content), Claim{MimeType: c.declared})
			if c.want == "" {
				refused(t, err, ErrType, "expected one of")
				return
			}
			if err != nil || o.MimeType != c.want || !strings.HasSuffix(o.Path, "."+c.ext) {
				t.Errorf("found %s, %s, %v, expected %s, .%s", o.MimeType, o.Path, err, c.want, c.ext)
			}
			if _, err := h.Parse(h.get(o)); err != nil {
				t.Error(err)
			}
		})
	}
}

func FuzzSniff(f *testing.F) {
	for _, s := range []string{"", "\xFF\xFB\x90", "OggS", "....ftyp3g", "RIFF....WEBP", "<svg", "\xEF\xBB\xBF<html>"} {
		f.Add([]byte(s), "text/html")
	}
	a, err := newAllowed(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, head []byte, declared string) {
		got, err := a.settle(sniff(head[:min(len(head), sniffBytes)]), essence(declared))
		if err != nil && !errors.Is(err, ErrType) || err == nil && (active(got) || essence(got) != got) {
			t.Errorf("found %q, %v", got, err)
		}
		if name := cleanName(declared, "bin"); name == "" || len(name) > maxName || strings.ContainsAny(name, "/\\\x00\r\n") {
			t.Errorf("found the name %q", name)
		}
		if got := disposition(Object{MimeType: got, Name: cleanName(declared, "bin")}); strings.ContainsAny(got, "\r\n") {
			t.Errorf("found %q", got)
		}
	})
}
