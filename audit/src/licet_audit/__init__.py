"""The durable, tamper-evident trail of licet: an append-only log, its reader and its verifier.

A state directory holds:

- `id`: the id of the log;
- `log/seg-<first record>.jsonl`: the records, one canonical line each, chained by their hashes;
- `log.lock`: locked while a batch is written;
- `writers/<instance>`: locked by each living writer; those of the dead are recovered at the next start;
- `quarantine/`: ends of lines that a dying writer left, as they were.
"""
