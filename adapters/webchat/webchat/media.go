package webchat

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"

	"github.com/pontoon-bridge/pontoon/sdk/message"
)

// Pictures, files and sound. With an error comes the piece that says that it
// can't be shown.

// picture must have a path of a PNG, JPEG, GIF or WebP file of this machine, the
// data of one, or a url that is http, https or a data url of one.
func picture(v message.VisionPart) (*piece, error) {
	m := &media{Alt: or(v.AltText, v.Caption), Caption: v.Caption}
	p := &piece{Kind: kindImage, Media: m}
	if v.Path != "" {
		g, err := newGrant(v.Path, "", true)
		if err != nil {
			return p, fmt.Errorf("image.path: %w", err)
		}
		p.grant, m.URL, m.Bytes = g, g.url(), g.info.Size()
		return p, nil
	}
	if m.URL = inline(v.MimeType, v.Data); m.URL != "" {
		return p, nil
	}
	if dataImage.MatchString(v.URL) {
		m.URL = v.URL
		return p, nil
	}
	if err := checkURL(v.URL); err != nil {
		return p, fmt.Errorf("image.url: %w", err)
	}
	m.URL = v.URL
	return p, nil
}

// inline is a data url of the base64; "" if it is no picture that browsers only
// draw. What type it is, the bytes say where mime does not.
func inline(mime, data string) string {
	if data == "" {
		return ""
	}
	if !slices.Contains(imageTypes, mime) {
		head, err := base64.StdEncoding.DecodeString(data[:min(len(data), 512)/4*4])
		if err != nil {
			return ""
		}
		mime = http.DetectContentType(head)
	}
	if address := "data:" + mime + ";base64," + data; dataImage.MatchString(address) {
		return address
	}
	return ""
}

// document must have a path of a file of this machine, or a url that is http or
// https. One that is still to come, or never will, has neither.
func document(f message.FilePart) (*piece, error) {
	m := &media{Name: f.FileName, Caption: f.Caption}
	p := &piece{Kind: kindFile, Media: m}
	if f.SizeBytes != nil && *f.SizeBytes > 0 && *f.SizeBytes < 1<<53 {
		m.Bytes = int64(*f.SizeBytes)
	}
	switch {
	case f.Path != "":
		g, err := newGrant(f.Path, f.FileName, false)
		if err != nil {
			return p, fmt.Errorf("file.path: %w", err)
		}
		p.grant, m.URL, m.Name, m.Bytes = g, g.url(), g.name, g.info.Size()
	case f.URL == "" && f.FileName != "" && (f.UploadStatus != "" || f.LifecycleStatus != ""):
		p.Text = fileText(or(string(f.LifecycleStatus), string(f.UploadStatus)))
	default:
		if err := checkURL(f.URL); err != nil {
			return p, fmt.Errorf("file.url: %w", err)
		}
		m.URL = f.URL
	}
	return p, nil
}

// fileText says why a file has no address.
func fileText(status string) string {
	switch status {
	case string(message.FileRejected), string(message.FileScanFailed), string(message.FileFailed):
		return "This file did not arrive."
	case string(message.FileRemoved):
		return "This file was removed."
	case string(message.FileSent), string(message.UploadCompleted):
		return "This file can't be opened."
	}
	return "This file is not here yet."
}

// sound must have a url that is http or https.
func sound(address, caption string) (*piece, error) {
	p := &piece{Kind: kindAudio, Media: &media{Caption: caption}}
	if err := checkURL(address); err != nil {
		return p, fmt.Errorf("audio.url: %w", err)
	}
	p.Media.URL = address
	return p, nil
}

// dataImage is what a browser shows without running anything. The page checks
// the same.
var dataImage = regexp.MustCompile(`^data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$`)

// checkURL says why a browser must not be led there.
func checkURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case address == "":
		return errors.New("found neither path nor url")
	case err != nil:
		return errors.New("found what is no url, expected http:// or https://")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return fmt.Errorf("found scheme %q, expected http:// or https:// and a host", u.Scheme)
	}
	return nil
}
