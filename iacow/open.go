package iacow

import (
	"errors"
	"fmt"
	"io"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// openImage opens the checkpoint whose files are given, newest first or not. It
// maps the files, reads the header and the footer of the newest and the headers of
// the others, and compares sizes and identities: the work does not depend
// on the number of entries. Other parts are checked when they are first used.
func openImage(spec *index.Spec, files []index.FileInfo) (_ *image, err error) {
	newest := files[0]
	for _, info := range files[1:] {
		if info.Checkpoint > newest.Checkpoint {
			newest = info
		}
	}
	own, h, err := mapFile(spec, newest)
	if err != nil {
		return nil, err
	}
	foot, err := own.footer(&h)
	if err != nil {
		return nil, joinClose(err, own.mapping)
	}
	im := &image{footer: *foot, hash: newHasher(identityOf(spec))}
	im.hold(spec, int(im.own), own)
	for place := range im.places {
		if err := im.openOlder(spec, place, newest.Name, files); err != nil {
			return nil, errors.Join(err, im.close())
		}
	}
	return im, nil
}

func (im *image) hold(spec *index.Spec, place int, f *file) {
	f.serve(spec, &im.places[place])
	im.files[place] = f
}

// openOlder maps and checks the file at a place of the generation table, if there is
// one and it is not the newest.
func (im *image) openOlder(spec *index.Spec, place int, newest string, files []index.FileInfo) error {
	g := &im.places[place]
	if !g.used() || place == int(im.own) {
		return nil
	}
	info, err := g.find(newest, files)
	if err != nil {
		return err
	}
	f, h, err := mapFile(spec, info)
	if err != nil {
		return err
	}
	if h.salt != g.salt {
		err := fault.Corrupt(info.Name, 0, headerFields, "is another file of checkpoint %d than the one referred to", info.Checkpoint)
		return joinClose(err, f.mapping)
	}
	im.hold(spec, place, f)
	return nil
}

// find returns the file of an older generation.
func (g *generation) find(newest string, files []index.FileInfo) (index.FileInfo, error) {
	for _, info := range files {
		if info.Checkpoint != g.checkpoint {
			continue
		}
		if uint64(info.Size) != g.size || info.Sum != g.sum {
			return info, fault.Corrupt(info.Name, 0, 0, "is not the file that %s refers to", newest)
		}
		return info, nil
	}
	return index.FileInfo{}, &fault.File{
		Kind: fault.ErrMissingFile, Path: newest,
		Reason: fmt.Sprintf("refers to nodes of checkpoint %d, whose file is not named", g.checkpoint),
	}
}

// belongs compares an identity with the expected one.
func (h *header) belongs(spec *index.Spec, info index.FileInfo) error {
	want := identityOf(spec)
	if h.database != want.database {
		return &fault.File{Kind: fault.ErrForeignFile, Path: info.Name, Length: headerFields, Reason: "node file with another database id"}
	}
	if h.identity != want {
		return fault.Corrupt(info.Name, 0, headerFields, "node file of index %d of table %d, should be %d of %d", h.index, h.table, want.index, want.table)
	}
	if h.checkpoint != info.Checkpoint {
		return fault.Corrupt(info.Name, 0, headerFields, "node file of checkpoint %d, should be %d", h.checkpoint, info.Checkpoint)
	}
	return nil
}

// readFull fills b from a range that should lie in the file.
func readFull(f vfs.File, b []byte, offset int64) error {
	n, err := f.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if err == io.EOF {
		return fault.Corrupt(f.Name(), offset, int64(len(b)), "file ends after %d bytes", n)
	}
	return fmt.Errorf("read %s: %w", f.Name(), err)
}

func joinClose(err error, c io.Closer) error { return errors.Join(err, c.Close()) }
