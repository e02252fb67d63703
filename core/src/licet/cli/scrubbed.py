"""What a card says of secrets that were taken out of what a run left.

Rules this module keeps:

- one row for each channel, and one for each text that was withheld; kinds and numbers alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from licet.scrubbing import Finding


def rows(findings: Sequence[Finding]) -> Iterator[tuple[str, str]]:
    """The rows, in the order of the channels."""
    channels: dict[str, list[Finding]] = {}
    for one in findings:
        if one.reason is None:
            channels.setdefault(one.channel, []).append(one)
    for channel, found in channels.items():
        count = sum(one.count for one in found)
        kinds = ", ".join(one.kind for one in found)
        yield "redacted", f"{count} {'secret' if count == 1 else 'secrets'} ({kinds}) from {channel}"
    for one in findings:
        if one.reason is not None:
            yield "withheld", f"{one.channel}: {one.reason}"
