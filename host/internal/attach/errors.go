package attach

import "errors"

// What is wrong with a url that somebody sends back. Each is wrapped with what
// was found and what was expected; no text ever holds a token.
var (
	ErrForged    = errors.New("url is not signed by this host")
	ErrExpired   = errors.New("url has expired")
	ErrForeign   = errors.New("url is not of this host")
	ErrTraversal = errors.New("path is not plain")
	ErrNotFound  = errors.New("attachment not found")
	ErrElsewhere = errors.New("attachment is of another channel")
)

// What is wrong with a file that somebody sends.
var (
	ErrTooLarge = errors.New("file is too large")
	ErrType     = errors.New("file type is not accepted")
	ErrEmpty    = errors.New("file is empty")
	ErrShort    = errors.New("file is not whole")
	ErrOwner    = errors.New("owner is not a url-safe key")
	ErrTaken    = errors.New("upload is done, or under way")
	ErrTooMany  = errors.New("too much is uploaded")
	ErrFull     = errors.New("there is no room on the disk")
)

// errBody marks what went wrong with the sender's stream, not with the disk.
var errBody = errors.New("read file")
