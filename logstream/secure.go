package logstream

import (
	"errors"
	"fmt"
	"io"
)

// Secure makes durable what Scan accepted. A log that was written by a process
// that was killed may exist in the page cache only; so the bytes between
// t.Proven and t.Ends are written again, in place, and synced. They are the
// same bytes, so a crash meanwhile changes nothing. Call it before serving,
// and before Open; not for a read-only database.
func Secure(o Options, t Tail) error {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return err
	}
	g := o.geometry()
	for stream, p := range t.Proven {
		for p < t.Ends[stream] {
			first := g.segmentOf(p)
			end := min(g.next(first), t.Ends[stream])
			if err := secureRange(&o, stream, first, p, end); err != nil {
				return fmt.Errorf("securing the end of the log: %w", err)
			}
			p = end
		}
	}
	return nil
}

// secureRange writes [from, to) of the segment at first again.
func secureRange(o *Options, stream int, first, from, to Position) (err error) {
	f, err := o.FS.Open(segmentPath(o.Dir, stream, first))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b := make([]byte, min(to-from, maxWindow))
	for at := int64(from - first); at < int64(to-first); at += int64(len(b)) {
		b = b[:min(int64(len(b)), int64(to-first)-at)]
		n, err := f.ReadAt(b, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if _, err := f.WriteAt(b[:n], at); err != nil {
			return err
		}
	}
	return f.Datasync()
}
