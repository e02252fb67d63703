"""The durable, tamper-evident trail of licet: an append-only log, its reader and its verifier.

A state directory holds:

- `id`: the id of the log;
- `log/seg-<first record>.jsonl`: the records, one canonical line each, chained by their hashes;
- `log.lock`: locked while a batch is written; `sync.lock`: while it is made durable, with how far that got;
- `writers/<instance>`: locked by each living writer; those of the dead are recovered at the next start;
- `quarantine/`: ends of lines that a dying writer left, as they were;
- `checkpoint`, `checkpoints/<records>`, `log.vkey`: what is signed, and the public key to check that with;
- `tile/<level>/<number>`: the Merkle tree over the records; `tree.lock` is locked while it grows;
- `anchors/<records>/<kind>-<name>`: answers of who saw a checkpoint; `anchor.lock` while they are asked;
- `content/<two digits>/<commitment>`: content that is kept beside the log, with its salt;
- `removal.lock`, `removal.begun`: locked, and there, while content is erased or segments are pruned.

The key that signs, and the newest checkpoint that was seen, are in the user's own state directory.
"""
