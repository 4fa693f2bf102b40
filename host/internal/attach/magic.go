package attach

import "bytes"

// magic knows formats that http.DetectContentType does not, or tells less of;
// "" = none.
func magic(head []byte) string {
	switch {
	case len(head) < 12:
		return ""
	case string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return "image/webp"
	case string(head[:4]) == "OggS":
		return ogg(head)
	case string(head[4:8]) == "ftyp":
		return isoMedia(string(head[8:12]))
	case string(head[:4]) == "fLaC":
		return "audio/flac"
	case string(head[:5]) == "#!AMR":
		return "audio/amr"
	}
	return mpegAudio(head)
}

// ogg tells moving pictures from sound by the codec of the first stream.
func ogg(head []byte) string {
	if bytes.Contains(head, []byte("\x80theora")) {
		return "video/ogg"
	}
	return "audio/ogg"
}

// isoMedia tells a type from the major brand (ISO/IEC 14496-12).
func isoMedia(brand string) string {
	switch brand {
	case "M4A ", "M4B ", "F4A ":
		return "audio/mp4"
	case "qt  ":
		return "video/quicktime"
	case "heic", "heix", "hevc", "hevx", "heim", "heis", "mif1", "msf1":
		return "image/heic"
	case "avif", "avis":
		return "image/avif"
	}
	if brand[:2] == "3g" {
		return "video/3gpp"
	}
	return "video/mp4"
}

// mpegAudio knows the header of a bare frame: 11 or 12 bits of 1, then fields
// of which some values are forbidden. MP3 with tags is known by them.
func mpegAudio(head []byte) string {
	if head[0] != 0xFF {
		return ""
	}
	version, layer := head[1]>>3&3, head[1]>>1&3
	rate, sampling := head[2]>>4, head[2]>>2&3
	switch {
	case head[1]&0xF6 == 0xF0:
		return "audio/aac" // ADTS
	case head[1]&0xE0 == 0xE0 && version != 1 && layer == 1 && rate != 0 && rate != 15 && sampling != 3:
		return "audio/mpeg"
	}
	return ""
}
