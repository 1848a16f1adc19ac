package message

import "unicode/utf8"

// TagHash is Java's String.hashCode of a tag given in UTF-8: h = 31·h + unit over
// its UTF-16 units, in 32 bits. It is the tagsCode of a queue's index (there it is
// sign-extended to 64 bits) and the value in the codeSet of a subscription. The
// hash of the empty tag is 0, which is also the code of a message without a tag.
func TagHash(tag []byte) int32 {
	var h int32
	for i, c := range tag {
		if c >= utf8.RuneSelf {
			return tagHashUnicode(h, tag[i:])
		}
		h = 31*h + int32(c)
	}
	return h
}

// tagHashUnicode goes on from h, rune by rune. Code points above U+FFFF count as
// the two surrogates that Java keeps for them; a byte that is no UTF-8 counts as
// U+FFFD, which is what Java's decoder makes of it.
func tagHashUnicode(h int32, tag []byte) int32 {
	for len(tag) > 0 {
		r, n := utf8.DecodeRune(tag)
		tag = tag[n:]
		if r > 0xFFFF {
			r -= 0x10000
			h = 31*h + 0xD800 + r>>10
			r = 0xDC00 + r&0x3FF
		}
		h = 31*h + r
	}
	return h
}
