package mapfile

import (
	"context"
	"errors"
	"io"

	"github.com/cespare/xxhash/v2"

	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// checkStep is how many bytes are read at once, at most.
const checkStep = 1 << 20

// Check reads a file from its medium, where the system can do that, and
// compares it with the size and the xxhash64 that its writer counted. It serves
// to read a file back before a manifest names it. The error for a difference is
// fault.ErrCorrupt.
func Check(ctx context.Context, fs vfs.FS, name string, size int64, sum uint64) (err error) {
	f, err := fs.OpenRead(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.DropCache(); err != nil {
		return err
	}
	gotSize, gotSum, err := sumFile(ctx, f, make([]byte, min(max(size, 0)+1, checkStep)), size)
	if err != nil {
		return err
	}
	if gotSize > size {
		return fault.Corrupt(name, 0, gotSize, "file has more than %d bytes", size)
	}
	if gotSize != size || gotSum != sum {
		return fault.Corrupt(name, 0, gotSize, "file has %d bytes with checksum %#x, should have %d with %#x", gotSize, gotSum, size, sum)
	}
	return nil
}

// sumFile reads a file to its end, or until it is known to have more than most bytes:
// it may have been made huge, and sparse.
func sumFile(ctx context.Context, f vfs.File, buf []byte, most int64) (size int64, sum uint64, err error) {
	var d xxhash.Digest
	d.Reset()
	for {
		if err := ctx.Err(); err != nil {
			return 0, 0, err
		}
		n, err := f.ReadAt(buf, size)
		d.Write(buf[:n]) // never fails
		size += int64(n)
		if errors.Is(err, io.EOF) || err == nil && size > most {
			return size, d.Sum64(), nil
		}
		if err != nil {
			return 0, 0, err
		}
	}
}
