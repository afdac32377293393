package iacow

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/fault"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// openImage opens the checkpoint whose files are given, newest first or not. It
// reads the header and the footer of the newest and the headers of the others,
// compares sizes and identities, and maps the files: the work does not depend
// on the number of entries. Other parts are checked when they are first used.
func openImage(spec *index.Spec, files []index.FileInfo) (_ *image, err error) {
	newest := files[0]
	for _, info := range files[1:] {
		if info.Checkpoint > newest.Checkpoint {
			newest = info
		}
	}
	foot, err := readRoot(spec, newest)
	if err != nil {
		return nil, err
	}
	im := &image{footer: *foot, hash: newHasher(identityOf(spec))}
	defer func() {
		if err != nil {
			err = errors.Join(err, im.close())
		}
	}()
	for place := range im.places {
		if err := im.open(spec, place, newest, files); err != nil {
			return nil, err
		}
	}
	return im, nil
}

// readRoot reads the header and the footer of the newest file.
func readRoot(spec *index.Spec, info index.FileInfo) (_ *footer, err error) {
	f, h, err := openFile(spec, info)
	if err != nil {
		return nil, err
	}
	defer func() { err = joinClose(err, f) }()
	b := make([]byte, footerBytes)
	if err := readFull(f, b, info.Size-footerBytes); err != nil {
		return nil, err
	}
	return decodeFooter(info.Name, b, info.Size, &h)
}

// open checks and maps the file at a place of the generation table.
func (im *image) open(spec *index.Spec, place int, newest index.FileInfo, files []index.FileInfo) error {
	g := &im.places[place]
	if !g.used() {
		return nil
	}
	info := newest
	if place != int(im.own) {
		var err error
		if info, err = g.find(newest.Name, files); err != nil {
			return err
		}
		if err := checkOlder(spec, info, g); err != nil {
			return err
		}
	}
	f, err := mapFile(spec.FS, spec.Arena, identityOf(spec), info, g)
	im.files[place] = f
	return err
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

// openFile opens a file and checks that it is the one that info names.
func openFile(spec *index.Spec, info index.FileInfo) (vfs.File, header, error) {
	f, err := spec.FS.OpenRead(info.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, header{}, &fault.File{Kind: fault.ErrMissingFile, Path: info.Name, Reason: "node file of the checkpoint"}
	}
	if err != nil {
		return nil, header{}, err
	}
	h, err := readHeader(f, spec, info)
	if err != nil {
		return nil, header{}, joinClose(err, f)
	}
	return f, h, nil
}

func readHeader(f vfs.File, spec *index.Spec, info index.FileInfo) (header, error) {
	size, err := f.Size()
	if err != nil {
		return header{}, err
	}
	if size != info.Size || size < blockBytes+footerBytes {
		return header{}, fault.Corrupt(info.Name, 0, 0, "node file has %d bytes, should have %d", size, info.Size)
	}
	b := make([]byte, headerFields)
	if err := readFull(f, b, 0); err != nil {
		return header{}, err
	}
	h, err := decodeHeader(info.Name, b)
	if err != nil {
		return header{}, err
	}
	return h, h.belongs(spec, info)
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

// checkOlder checks the file of an older generation.
func checkOlder(spec *index.Spec, info index.FileInfo, g *generation) error {
	f, h, err := openFile(spec, info)
	if err != nil {
		return err
	}
	if h.salt != g.salt {
		err = fault.Corrupt(info.Name, 0, headerFields, "is another file of checkpoint %d than the one referred to", info.Checkpoint)
	}
	return joinClose(err, f)
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
