package chainindex

import (
	"errors"

	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/arena"
)

var errReadOnly = errors.New("chainindex: tree in a file was to be changed")

// readOnly is the part of a node store that trees which are never changed do
// not use.
type readOnly struct{}

func (readOnly) Epoch() uint64                                         { return 0 }
func (readOnly) NewID(uint32) (btree.NodeID, error)                    { return 0, errReadOnly }
func (readOnly) NewBlock(uint32) (arena.Ref, error)                    { return 0, errReadOnly }
func (readOnly) FreeBlock(uint32, arena.Ref)                           {}
func (readOnly) Replaced(uint32, btree.NodeID, uint64, uint64, uint64) {}
func (readOnly) Dropped(uint32, btree.NodeID, uint64, uint64, uint64)  {}
