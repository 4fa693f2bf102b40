package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/pontoon-bridge/pontoon/host/internal/attach"
)

// media is an image or file as a message names it: by its url, or by that of a
// file of this machine once it is uploaded.
func (c *client) media(ctx context.Context, channel, field, where string) (map[string]string, error) {
	if strings.HasPrefix(where, "https://") || strings.HasPrefix(where, "http://") {
		return map[string]string{"url": where}, nil
	}
	made, err := c.upload(ctx, channel, where)
	switch {
	case err != nil:
		return nil, err
	case field == "file":
		return map[string]string{"url": made.URL, "filename": filepath.Base(where)}, nil
	case !strings.HasPrefix(made.MimeType, "image/"):
		return nil, fmt.Errorf("%s: found %s, expected a picture: send it with --file", where, made.MimeType)
	}
	return map[string]string{"url": made.URL}, nil
}

// upload gives the host a file for a message of the channel.
func (c *client) upload(ctx context.Context, channel, file string) (made attach.Uploaded, err error) {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return made, err
	case !info.Mode().IsRegular():
		return made, fmt.Errorf("%s: found no regular file, expected one", file)
	case info.Size() > attach.DefaultMaxBytes:
		return made, fmt.Errorf("%s: found %d bytes, expected at most %d", file, info.Size(), attach.DefaultMaxBytes)
	}
	body, kind, err := form(file)
	if err != nil {
		return made, err
	}
	resp, err := c.request(ctx, http.MethodPost, "/channels/"+url.PathEscape(channel)+"/attachments", body, http.Header{"Content-Type": {kind}})
	if err != nil {
		return made, err
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := readAnswer(resp.Body)
	if err != nil {
		return made, err
	}
	if err := json.Unmarshal(raw, &made); err != nil {
		return made, fmt.Errorf("read answer: %w", err)
	}
	return made, nil
}

// form is the file as a form, and the form's content type.
func form(file string) (io.Reader, string, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = f.Close() }()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, err := w.CreateFormFile("file", filepath.Base(file))
	if err == nil {
		_, err = io.Copy(part, f)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, "", fmt.Errorf("read %s: %w", file, err)
	}
	return &b, w.FormDataContentType(), nil
}
