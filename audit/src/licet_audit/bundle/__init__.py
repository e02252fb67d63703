"""A bundle: records with all that proves them, for somebody who has neither the log nor licet.

manifest.json            what was asked for, how many records there are, what content comes along
records.jsonl            the records, byte for byte as in the log
records.proof            the signed checkpoint, and what it takes to compute its root from these records
log.vkey                 the log's public key, to be compared with what its owner says
anchors/SIZE/KIND-NAME   receipts of those who saw a checkpoint of SIZE records
anchors/SIZE/consistency that the checkpoint in `records.proof` continues that one
content/COMMITMENT       with `--content`: 32 bytes of salt, and what was kept
verify.py                checks all that with Python alone
"""
