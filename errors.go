package rekindle

import "github.com/rekindledb/rekindle/internal/fault"

// Errors are compared with errors.Is; those with more to say also have a type
// for errors.As.
var (
	// ErrClosed: the database has been closed.
	ErrClosed = fault.ErrClosed
	// ErrTxDone: the transaction has been committed or rolled back.
	ErrTxDone = fault.ErrTxDone
	// ErrTxBusy: another goroutine is inside a call on the same transaction.
	ErrTxBusy = fault.ErrTxBusy
	// ErrTxReadOnly: a write in a read-only transaction.
	ErrTxReadOnly = fault.ErrTxReadOnly
	// ErrReadOnly: the database was opened read-only, or has become read-only
	// because writing its log failed.
	ErrReadOnly = fault.ErrReadOnly
	// ErrConflict: another transaction wrote the row, or holds the unique key,
	// since this one began. The transaction cannot win; run it again. See
	// ConflictError.
	ErrConflict = fault.ErrConflict
	// ErrDuplicateKey: a unique key is taken. The transaction goes on as if the
	// statement had not been. See DuplicateKeyError.
	ErrDuplicateKey = fault.ErrDuplicateKey
	// ErrNotFound: no visible row has the key, or there is no such table. See
	// NotFoundError.
	ErrNotFound = fault.ErrNotFound
	// ErrKeyTooLarge: an encoded key passes its limit of 4096 bytes. See
	// TooLargeError.
	ErrKeyTooLarge = fault.ErrKeyTooLarge
	// ErrRowTooLarge: a row passes its limit, see Options.SegmentBytes and
	// TooLargeError.
	ErrRowTooLarge = fault.ErrRowTooLarge
	// ErrSchema: a struct tag, a table definition or a column value is wrong.
	// See SchemaError.
	ErrSchema = fault.ErrSchema
	// ErrSchemaMismatch: the stored table has another schema. See SchemaError.
	ErrSchemaMismatch = fault.ErrSchemaMismatch
	// ErrInvalidQuery: a query names an unknown index or has wrong values.
	ErrInvalidQuery = fault.ErrInvalidQuery
	// ErrForeignTable: the table and the transaction belong to different
	// databases, or the table to an earlier Open of this one.
	ErrForeignTable = fault.ErrForeignTable
	// ErrInvalidOptions: the options contradict themselves or the database, or a
	// directory is none that Backup or Salvage can write to.
	ErrInvalidOptions = fault.ErrInvalidOptions
	// ErrLocked: the database is open, in this process or another.
	ErrLocked = fault.ErrLocked
	// ErrFormat: a file has a format version that this release does not know.
	// See FileError, as for the next three.
	ErrFormat = fault.ErrFormat
	// ErrCorrupt: a file is damaged.
	ErrCorrupt = fault.ErrCorrupt
	// ErrForeignFile: a file belongs to another database.
	ErrForeignFile = fault.ErrForeignFile
	// ErrMissingFile: a file that the database needs is not there.
	ErrMissingFile = fault.ErrMissingFile
	// ErrIndexDamaged: the files of an index turned out to be damaged while it was
	// in use. It is being rebuilt from the rows; until then what has to be looked
	// up in it fails with this error, which wraps what was found.
	ErrIndexDamaged = fault.ErrIndexDamaged
	// ErrNoSpace: no room could be made for the commit, as a rule because the disk
	// is full; the error wraps the reason. Nothing was published.
	ErrNoSpace = fault.ErrNoSpace
	// ErrMemoryLimit: Options.MemoryLimit is reached.
	ErrMemoryLimit = fault.ErrMemoryLimit
	// ErrCommitUnknown: the commit is visible, but the context ended or the
	// disk failed before it was known to be durable. Update does not retry it.
	ErrCommitUnknown = fault.ErrCommitUnknown
	// ErrCheckpointStalled: checkpoints keep failing and the log has grown too
	// far to go on without one.
	ErrCheckpointStalled = fault.ErrCheckpointStalled
	// ErrSnapshotTooOld: the transaction was ended because it passed
	// Options.MaxSnapshotAge; what it had written is rolled back.
	ErrSnapshotTooOld = fault.ErrSnapshotTooOld
	// ErrOpenTransactions: Close had to end transactions that were still open.
	// The database is closed all the same. See OpenTransactionsError.
	ErrOpenTransactions = fault.ErrOpenTransactions
)

// Typed errors, for errors.As into a pointer to one of them: a
// *ConflictError, say. Keys in them are text for people. Where an error of
// several kinds has one type, its field Kind is the ErrX that it is.
type (
	// ConflictError says which row or unique key was contested: its Table, its
	// Key, the Index if that was the key of a unique index and not the primary
	// key, and the Reason.
	ConflictError = fault.Conflict
	// DuplicateKeyError says which unique Key is taken, in which Table and Index.
	DuplicateKeyError = fault.DuplicateKey
	// NotFoundError says which Key of which Table is missing, and the Index if it
	// was looked up by another one than the primary key. Without a Key the table
	// is.
	NotFoundError = fault.NotFound
	// TooLargeError says how many bytes a row or a key has (Size), how many it
	// may have (Limit), and in which Table and, for a key, Index. Kind is
	// ErrRowTooLarge or ErrKeyTooLarge.
	TooLargeError = fault.TooLarge
	// SchemaError says which Table and, if it is one, which Column is wrong, and
	// the Reason. Kind is ErrSchema or ErrSchemaMismatch.
	SchemaError = fault.Schema
	// OpenTransactionsError lists the Transactions that Close had to end, oldest
	// first.
	OpenTransactionsError = fault.OpenTransactions
	// FileError says at which Path a file is wrong, and the Reason. What is wrong
	// begins at Offset and has Length bytes, 0 if that is unknown or the whole
	// file. Kind is ErrCorrupt, ErrFormat, ErrForeignFile or ErrMissingFile.
	FileError = fault.File
	// ReadError says which Row of which Table could not be read from the log, a
	// number that the row has inside of the engine, and where it is: the segment's
	// Path and the Offset in it. Err is the cause.
	ReadError = fault.Read
)
