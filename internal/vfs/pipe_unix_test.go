//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package vfs_test

import "golang.org/x/sys/unix"

func makePipe(name string) error { return unix.Mkfifo(name, 0o600) }
