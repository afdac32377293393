//go:build !(amd64 || arm64 || loong64 || mips64le || ppc64le || riscv64)

package vfs

// Files are little-endian and used in place, as they are mapped: by a big-endian
// processor each word would be read backwards. Addresses of the arena and of the
// log, and the sizes of mapped files, take 64 bits. So on other processors the
// build fails here, rather than the database later.
var _ = Rekindle_needs_a_64_bit_little_endian_processor
