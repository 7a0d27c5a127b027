"""Crash tests: `pytest tests/crash` (`-m "not slow"` for the sample of the fast suite). Kills by phase are printed at
the end.

test_points       a kill before, in and after every write, fsync and rename of runner and worker, on a torch-free stage
test_moments      kills at random moments of the real steps of `smoke`; R1PIPE_CRASH_KILLS, R1PIPE_CRASH_SEED
test_checkpoints  checkpoints of a trainer that rotted or were cut
test_world        full, read-only and broken disks, damaged files, two at once, signals, a clock that goes back
faults/           what ends a process at a point, from outside: r1pipe has no fail points of its own
"""
