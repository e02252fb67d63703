"""What the authors of policies work with: recorded runs decided again, and lines that would let them through.

Rules this package keeps:

- whatever is decided here is decided by the functions that decide runs;
- nothing is executed or attacked, and no policy and no log is written: IO is left to whoever calls.
"""
