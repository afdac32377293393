// Package cgroup finds out how much memory a container gives the process.
//
// Linux keeps limits in control groups, of which there are two versions; a
// system may have both. Each group is a directory, and the process is bound by
// the limits of its group and of all groups above it:
//
//	/proc/self/cgroup     the path of the group in each hierarchy
//	/proc/self/mountinfo  where hierarchies are mounted, and from which group on
//	memory.max            the limit in version 2: bytes, or "max"
//	memory.limit_in_bytes in version 1: bytes; without a limit a huge number
//
// In a container the mount often begins at the container's own group, so that
// the path leads nowhere below it; then the top of the mount is the group.
package cgroup
