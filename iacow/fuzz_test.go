package iacow

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/internal/alloctest"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// reseal makes the checksums of a file's header, footer and directory right, so
// that hostile content comes through to the code behind them.
func reseal(b []byte, id identity, checkpoint, salt uint64) {
	if len(b) < blockBytes+footerBytes {
		return
	}
	h := header{identity: id, checkpoint: checkpoint, salt: salt}
	copy(b, h.encode()[:headerFields])
	hash := newHasher(id)
	foot := b[len(b)-footerBytes:]
	copy(foot, footerMagic)
	var f footer
	f.decode(foot[8:])
	for chunk := range min(chunksFor(f.pages), 4) {
		at := f.directory + chunk*chunkBytes
		if at+chunkBytes < at || at+chunkBytes > uint64(len(b)-footerBytes) {
			break
		}
		c := b[at:][:chunkBytes]
		binary.LittleEndian.PutUint64(c, hash.chunk(checkpoint, salt, chunk, c[chunkSumBytes:]))
	}
	binary.LittleEndian.PutUint64(foot[footerBytes-8:], hash.footer(checkpoint, salt, foot[:footerBytes-8]))
}

// hostile opens a checkpoint with right checksums and any content. Nothing may
// panic, hang, allocate by its numbers, or give another error than for damage.
func hostile(t *testing.T, older, newer []byte) {
	defer time.AfterFunc(time.Minute, func() { panic("it hangs") }).Stop()
	r := bareRig(t, vfs.NewMem())
	require.NoError(t, r.fs.MkdirAll("/db"))
	id := identityOf(&r.spec)
	newer = slices.Clone(newer)
	reseal(newer, id, 2, 0x5a19)
	files := []index.FileInfo{
		{Name: "/db/2.iacow", Size: int64(len(newer)), Checkpoint: 2},
		{Name: "/db/1.iacow", Size: int64(len(older)), Checkpoint: 1},
	}
	if len(newer) >= footerBytes {
		var f footer
		f.decode(newer[len(newer)-footerBytes+8:])
		for i := range f.places {
			if f.places[i].checkpoint == 1 {
				files[1].Sum = f.places[i].sum
			}
		}
	}
	require.NoError(t, vfs.WriteFileAtomic(r.fs, files[0].Name, newer))
	require.NoError(t, vfs.WriteFileAtomic(r.fs, files[1].Name, older))
	x, err := r.tryOpen(files)
	if err != nil {
		require.True(t, typed(err), "%v", err)
		return
	}
	r.x = x
	ok := func(err error) { require.True(t, err == nil || typed(err), "%v", err) }
	_, err = scanAll(x, r.h)
	ok(err)
	r.h.Pin()
	for i := range uint64(40) {
		_, err := x.Lookup(r.h, []byte(integer(i*100)), nil)
		ok(err)
		ok(x.Insert(r.h, []byte(integer(i*100+1)), 1, nil))
	}
	r.h.Unpin()
	r.number = 2
	c := r.begin()
	if _, err := c.Write(t.Context(), r.create(3)); err != nil {
		ok(err)
		c.Abandon()
	} else {
		c.Published()
	}
}

// FuzzFiles changes the newest file, and the older one at a place.
func FuzzFiles(f *testing.F) {
	r := goldenRig(f)
	files := r.kept[1].files
	newer, older := r.content(files[0].Name), r.content(files[1].Name)
	f.Add(newer, uint16(0), byte(0))
	for at := len(newer) - footerBytes; at < len(newer); at += 8 {
		damaged := slices.Clone(newer)
		damaged[at] ^= 0x11
		f.Add(damaged, uint16(at), byte(1))
	}
	for at := 3 * blockBytes; at < 5*blockBytes+400; at += 100 {
		damaged := slices.Clone(newer)
		damaged[at] ^= 0x80
		f.Add(damaged, uint16(at), byte(0))
	}
	f.Fuzz(func(t *testing.T, newer []byte, at uint16, flip byte) {
		damaged := slices.Clone(older)
		damaged[int(at)%len(damaged)] ^= flip
		alloctest.Bound(t, 8<<20, 100, len(damaged)+len(newer), func() { hostile(t, damaged, newer) })
	})
}

// FuzzHeader reads any header and footer.
func FuzzHeader(f *testing.F) {
	r := goldenRig(f)
	content := r.content(r.kept[1].files[0].Name)
	f.Add(content[:headerFields], content[len(content)-footerBytes:], int64(len(content)))
	f.Fuzz(func(t *testing.T, head, foot []byte, size int64) {
		if len(head) < headerFields || len(foot) < footerBytes || size < 0 {
			return
		}
		h, err := decodeHeader("f", head)
		if err != nil {
			require.True(t, typed(err))
			h = header{checkpoint: 2}
		}
		foot = foot[:footerBytes]
		copy(foot, footerMagic)
		binary.LittleEndian.PutUint64(foot[footerBytes-8:], newHasher(h.identity).footer(h.checkpoint, h.salt, foot[:footerBytes-8]))
		got, err := decodeFooter("f", foot, size, &h)
		if err != nil {
			require.True(t, typed(err))
			return
		}
		require.Equal(t, foot, got.encode(newHasher(h.identity)))
	})
}

// FuzzPage reads any page of the node table.
func FuzzPage(f *testing.F) {
	r := goldenRig(f)
	im, err := openImage(&r.spec, r.kept[1].files)
	require.NoError(f, err)
	defer im.close()
	ref, err := im.ref(0)
	require.NoError(f, err)
	var seed [pageBytes]byte
	require.NoError(f, im.files[ref.place].copyBlocks(seed[:], ref.block))
	f.Add(seed[:], uint64(0), ref.live)
	f.Fuzz(func(t *testing.T, content []byte, page uint64, live uint16) {
		var b [pageBytes]byte
		copy(b[:], content)
		var words pageWords
		page %= im.footer.pages
		reason := im.decodePage(page, &pageRef{block: 1, live: live, sum: im.hash.page(page, b[:])}, &b, &words)
		inUse := 0
		for i, e := range words {
			if reason == "" && e != 0 {
				require.Empty(t, e.check(&im.places))
				require.Less(t, page<<pageShift+uint64(i), im.next)
				inUse++
			}
		}
		require.True(t, reason != "" || inUse == int(live))
	})
}
