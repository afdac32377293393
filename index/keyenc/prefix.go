package keyenc

import "bytes"

// PrefixEnd returns the smallest key above every key that begins with prefix,
// as a new slice. It returns false when there is none, because the prefix is
// empty or all 0xFF: then a scan over the prefix is open at that end.
func PrefixEnd(prefix []byte) ([]byte, bool) {
	return AppendPrefixEnd(nil, prefix)
}

// AppendPrefixEnd is PrefixEnd appending to dst, which is returned unchanged
// when there is no end. dst must not overlap prefix.
func AppendPrefixEnd(dst, prefix []byte) ([]byte, bool) {
	n := len(prefix)
	for n > 0 && prefix[n-1] == 0xFF {
		n--
	}
	if n == 0 {
		return dst, false
	}
	dst = append(dst, prefix[:n]...)
	dst[len(dst)-1]++
	return dst, true
}

// MatchBytes reports whether key begins with the string or bytes component of
// v, and returns what follows it. It compares in place, without encoding v.
func MatchBytes(key, v []byte) (rest []byte, ok bool) {
	for {
		i := bytes.IndexByte(v, zeroByte)
		if i < 0 {
			return cutEnd(key, v)
		}
		if len(key) < i+2 || !bytes.Equal(key[:i+1], v[:i+1]) || key[i+1] != zeroEscape {
			return nil, false
		}
		key, v = key[i+2:], v[i+1:]
	}
}

// cutEnd cuts v, which has no zero byte, and the end of a component off key.
func cutEnd(key, v []byte) (rest []byte, ok bool) {
	n := len(v)
	if len(key) < n+2 || !bytes.Equal(key[:n], v) || key[n] != zeroByte || key[n+1] != zeroEnd {
		return nil, false
	}
	return key[n+2:], true
}
