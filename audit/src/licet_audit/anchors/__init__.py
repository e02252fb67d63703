"""Anchors: checkpoints of the log, seen outside this host."""
