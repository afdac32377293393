module github.com/rekindledb/rekindle/index/btree/peers

go 1.26.0

require (
	github.com/google/btree v1.1.3
	github.com/rekindledb/rekindle v0.0.0
	github.com/tidwall/btree v1.8.1
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace github.com/rekindledb/rekindle => ../../..
