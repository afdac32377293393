package indirection

import (
	"context"
	"errors"

	"github.com/rekindledb/rekindle/internal/mapfile"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// Verify reads all that the image refers to from its files, not through the
// mappings, and checks every checksum: directory, pages, patches, and each file
// as a whole. It returns the first damage it finds.
func (im *Image) Verify(ctx context.Context) (err error) {
	v := im.view
	defer func() { err = errors.Join(err, closeSources(&v)) }()
	if err := im.openSources(&v); err != nil {
		return err
	}
	if err := v.verifyPages(ctx); err != nil {
		return err
	}
	for _, g := range im.Generations() {
		if err := VerifyGeneration(ctx, im.fs, g.Path, g); err != nil {
			return err
		}
	}
	return nil
}

// openSources lets v read files.
func (im *Image) openSources(v *view) error {
	v.sources = [placeCount]source{}
	for place, f := range im.files {
		if f == nil {
			continue
		}
		file, err := im.fs.OpenRead(f.info.Path)
		if err != nil {
			return err
		}
		v.sources[place] = &fileSource{file: file}
	}
	return nil
}

func closeSources(v *view) error {
	var errs []error
	for _, s := range v.sources {
		if f, ok := s.(*fileSource); ok {
			errs = append(errs, f.file.Close())
		}
	}
	return errors.Join(errs...)
}

// verifyPages reads every page of an image.
func (v *view) verifyPages(ctx context.Context) error {
	var entries [piaPages]pageEntry
	for pia := v.firstPIA; v.hasPIA(pia); pia++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := v.chunk(pia, &entries); err != nil {
			return err
		}
		for i, e := range entries {
			if err := v.verifyPage(pia*piaPages+uint64(i), e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *view) verifyPage(page uint64, e pageEntry) error {
	if e.empty() {
		return nil
	}
	var content [pageBytes]byte
	if err := v.page(page, e, content[:]); err != nil {
		return err
	}
	if reason := v.implausible(page, e, &content); reason != "" {
		return v.corrupt(int(v.own), v.entryOffset(page), pageEntryBytes, "page", reason)
	}
	return nil
}

// implausible returns what is wrong with a page whose checksum is right.
func (v *view) implausible(page uint64, e pageEntry, content *[pageBytes]byte) string {
	for slot := range PageSlots {
		if word(content[:], slot) != 0 && page<<pageShift+uint64(slot) >= v.highWater {
			return "has rows above the high-water mark"
		}
	}
	if liveSlots(content) != e.live {
		return "has another number of rows than its entry says"
	}
	return ""
}

// VerifyGeneration reads a file from its medium, where the system can do that,
// and compares size and checksum with what its builder returned. It serves to
// read a file back before a manifest names it.
func VerifyGeneration(ctx context.Context, fs vfs.FS, path string, g Generation) error {
	return mapfile.Check(ctx, fs, path, g.Size, g.Sum)
}

// fileSource reads a file that may be another by now than when it was mapped.
type fileSource struct {
	file vfs.File
	buf  []byte
}

func (s *fileSource) view(offset uint64, n int) ([]byte, error) {
	if cap(s.buf) < n {
		s.buf = make([]byte, n)
	}
	b := s.buf[:n]
	return b, readFull(s.file, b, int64(offset))
}
