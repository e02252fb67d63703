"""`licet audit export --format ocsf`: runs as events of the Open Cybersecurity Schema Framework, 1.8.0.

Rules this package keeps:

- pure, from records alone; `metadata.uid` names the record, so that an event which comes twice is seen;
- what the framework has no place for stands in `unmapped`, under the names of `licet.telemetry`;
- content is never in it, as it is never in a record: a script's text is said to be cut, with its size.
"""
