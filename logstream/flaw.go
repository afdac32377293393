package logstream

// flaw says why bytes are not what they should be. Decoders return flaws; the
// caller knows the place and whether it is the end of the log or damage.
type flaw string

const (
	flawNone     flaw = ""
	flawShort    flaw = "cut short"
	flawZero     flaw = "zeros"
	flawMagic    flaw = "no magic number"
	flawChecksum flaw = "checksum mismatch"
	flawSize     flaw = "impossible size"
	flawField    flaw = "impossible field"
	flawPlace    flaw = "belongs to another place"
	flawLife     flaw = "belongs to another incarnation"
)
