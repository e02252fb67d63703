"""`licet audit export --format otlp`: committed records to an OpenTelemetry collector, as logs or as traces.

Rules this package keeps:

- what is sent is read from the log, never from what happened live: what was sampled away is in it;
- for each destination a cursor outside the log says how far it got; it moves only after the collector has
  said in words of OTLP what it did, so that a record is never skipped;
- what is sent again after a crash is the same to the byte: ids come from the leaf of the record.
"""
