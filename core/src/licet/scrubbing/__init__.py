"""Scrubbing: what a run leaves is cleaned of secrets before anybody sees, records or keeps it.

Rules this package keeps:

- a scrubber says what is secret and where; core alone cuts it out, so that a scrubber can only take away;
- all scrubbers read the same text, and what any of them finds goes: their order never matters;
- a scrubber that fails has not read the text, so the text is withheld, and the finding says why;
- a finding names a kind and a number, never the secret or its place.
"""

from licet.scrubbing.ends import Clean, Leavings, clean, cleaned, message
from licet.scrubbing.known import secrets_of
from licet.scrubbing.spans import Channel, Find, Finding, Scrubbed, Secret, scrub, withheld
from licet.scrubbing.suspicion import plain

__all__ = [
    "Channel",
    "Clean",
    "Find",
    "Finding",
    "Leavings",
    "Scrubbed",
    "Secret",
    "clean",
    "cleaned",
    "message",
    "plain",
    "scrub",
    "secrets_of",
    "withheld",
]
