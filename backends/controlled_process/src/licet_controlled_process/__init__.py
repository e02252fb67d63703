"""An ordinary CPython subprocess under supervision: it bounds and ends a run, and keeps nothing from it."""
