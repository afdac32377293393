// Package keyenc encodes column values into index keys whose byte order is the
// order of the values. docs/format/key.md describes the bytes.
//
// A key is the concatenation of its components, most significant first. Every
// component is self-delimiting: no encoding is a proper prefix of another
// encoding of the same component type. From that follow the invariants that
// the index layer relies on:
//
//   - Order: bytes.Compare of two keys over the same component types is the
//     lexicographic order of their values.
//   - Injectivity: two keys are equal only if all their values are equal, so
//     composite keys never collide ("a","bc" against "ab","c").
//   - Prefixes: the encoding of the first k components is a prefix of every
//     key that begins with these values, and of no other. A scan over
//     [prefix, PrefixEnd(prefix)) sees exactly those.
//   - Canonical: a value has one encoding, and decoders refuse every other
//     sequence of bytes. Decoding and encoding again gives the same bytes.
//
// Components and their order:
//
//	NULL marker  1 byte, before each component of a nullable column:
//	             00 = NULL (nothing follows), 01 = a value follows.
//	             NULL sorts first and equals NULL.
//	bool         1 byte, 00 or 01.
//	uintN        N/8 bytes, big-endian.
//	intN         N/8 bytes, big-endian, sign bit flipped.
//	floatN       N/8 bytes, big-endian. Negative: all bits flipped; else: sign
//	             bit set. -0 is encoded as +0. Every NaN is encoded as one NaN
//	             that sorts after +Inf.
//	string,bytes the bytes with 00 written as 00 FF, then 00 01. Compared
//	             bytewise; a prefix sorts first.
//	time         12 bytes: seconds as an int64 component, then nanoseconds as a
//	             uint32 component. See Instant.
//
// Append functions add to dst and return the extended slice, like append; they
// allocate only when dst must grow. Decode functions return the rest of the
// key and, for malformed bytes, an error that wraps fault.ErrCorrupt.
package keyenc
