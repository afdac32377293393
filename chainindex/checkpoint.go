package chainindex

import (
	"context"
	"slices"

	"github.com/rekindledb/rekindle/index"
	"github.com/rekindledb/rekindle/index/btree"
	"github.com/rekindledb/rekindle/internal/arena"
	"github.com/rekindledb/rekindle/internal/epoch"
	"github.com/rekindledb/rekindle/internal/invariants"
	"github.com/rekindledb/rekindle/internal/vfs"
)

// BeginCheckpoint freezes the head and puts a new one in front of it. It waits
// for operations that may still be writing into the old one. If checkpoints
// before were abandoned, it first makes one layer of what they left frozen;
// that holds up nobody but the caller.
func (x *Index) BeginCheckpoint(ctx context.Context, n uint64) (index.Capture, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if invariants.Enabled && x.capturing {
		invariants.Fail("index %s: two captures at a time", x.spec.Name)
	}
	if err := x.settleFrozen(ctx); err != nil {
		return nil, err
	}
	if err := x.compact(ctx); err != nil {
		return nil, err
	}
	if err := x.freeze(); err != nil {
		return nil, err
	}
	if err := x.settleFrozen(ctx); err != nil {
		return nil, err
	}
	x.capturing = true
	return &capture{x: x, number: n, frozen: x.chain.Load().frozen()}, nil
}

// freeze puts a new head in front of the chain, unless the head is empty. What
// was the head may change until settleFrozen. Under x.mu.
func (x *Index) freeze() error {
	c := x.chain.Load()
	if c.head().entries() == 0 {
		return nil
	}
	tree, err := btree.New(TreeConfig(&x.spec))
	if err != nil {
		return err
	}
	if x.snapshot != nil {
		x.snapshot.note(c.head())
	}
	x.unsettled = true
	x.install(c.withHead(newLayer(tree, 0)))
	return nil
}

// settleFrozen waits until nobody writes into frozen layers any more.
func (x *Index) settleFrozen(ctx context.Context) error {
	if !x.unsettled {
		return nil
	}
	if err := x.spec.Domain.Barrier(ctx); err != nil {
		return err
	}
	x.unsettled = false
	for _, l := range x.chain.Load().frozen() {
		l.count.Store(l.entries())
	}
	return nil
}

// compact makes one layer of the frozen ones if there would be too many.
func (x *Index) compact(ctx context.Context) error {
	c := x.chain.Load()
	if len(c.frozen()) < maxFrozen-1 {
		return nil
	}
	config := TreeConfig(&x.spec)
	config.Shard = arena.Checkpoint.Shard(0)
	b, err := btree.NewBuilder(config, 1)
	if err != nil {
		return err
	}
	_, dead, err := pour(ctx, x.checkpointHandle(), c.frozen(), len(c.files()) == 0, b.Add)
	if err != nil {
		return joinAbandon(err, b)
	}
	tree, err := b.Finish()
	if err != nil {
		return joinAbandon(err, b)
	}
	x.replace(&chain{slices.Concat([]*layer{c.head(), newLayer(tree, dead)}, c.files()), 2}, c.frozen())
	return nil
}

// checkpointHandle is for merges, of which a checkpoint has one at a time.
func (x *Index) checkpointHandle() *epoch.Handle {
	if x.handle == nil {
		x.handle = x.spec.Domain.Register()
	}
	return x.handle
}

// replace installs a chain that does without some layers. Under x.mu.
func (x *Index) replace(c *chain, without []*layer) {
	x.install(c)
	for _, l := range without {
		x.release(l)
	}
}

func (x *Index) install(c *chain) {
	if invariants.Enabled && len(c.layers) > maxLayers {
		invariants.Fail("index %s: chain of %d layers", x.spec.Name, len(c.layers))
	}
	x.chain.Store(c)
}

// capture is the part of a checkpoint.
type capture struct {
	x       *Index
	number  uint64
	frozen  []*layer // what was entered since the last one
	written *layer   // by Write; nil if there was nothing to write
	merged  int      // how many files it replaces, with frozen
}

// Write makes one file of the frozen layers and, as filesToMerge says, of the
// newest files. Paced writing bounds how it disturbs commits.
func (p *capture) Write(ctx context.Context, create func(ext string) (vfs.File, error)) ([]index.FileInfo, error) {
	files := p.x.chain.Load().files()
	fresh := totalSize(p.frozen)
	if fresh == 0 && len(files) > 0 {
		return infos(files), nil
	}
	merged := p.x.plan(fresh, files)
	inputs := slices.Concat(p.frozen, files[:merged])
	info, err := p.x.writeFile(ctx, p.number, create, inputs, files[merged:])
	if err != nil {
		return nil, err
	}
	if p.written, err = openLayer(&p.x.spec, info); err != nil {
		return nil, err
	}
	p.merged = merged
	return infos(p.files(files)), nil
}

// files returns what the files of the chain become.
func (p *capture) files(files []*layer) []*layer {
	if p.written == nil {
		return files
	}
	return slices.Insert(slices.Clone(files[p.merged:]), 0, p.written)
}

func infos(files []*layer) []index.FileInfo {
	var list []index.FileInfo
	for _, l := range files {
		list = append(list, l.file.info)
	}
	return list
}

// Published puts the file in the place of the layers that it was made of.
func (p *capture) Published() {
	x := p.x
	x.mu.Lock()
	defer x.mu.Unlock()
	c := x.chain.Load()
	memory := c.layers[:c.memory-len(p.frozen)]
	without := c.layers[len(memory) : c.memory+p.merged]
	x.replace(&chain{slices.Concat(memory, p.files(c.files())), len(memory)}, without)
	x.capturing = false
}

// Abandon leaves the frozen layers in the chain, for the next checkpoint.
func (p *capture) Abandon() {
	p.x.mu.Lock()
	defer p.x.mu.Unlock()
	if p.written != nil {
		p.x.release(p.written)
	}
	p.x.capturing = false
}
