"""What the authors of policies work with: pure functions over stacks, decisions and records.

Rules this package keeps:

- whatever is decided here is decided by the functions that decide runs;
- nothing is executed or attacked, and no policy and no log is written: IO is left to whoever calls.
"""
