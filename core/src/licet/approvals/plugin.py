"""The approval services that licet ships: the queue in the state directory, and the webhook.

Rules this module keeps:

- what settings do not name is not even imported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from licet.approvals.services import ApprovalService
from licet.errors import InvalidSettings
from licet.hookspecs import hookimpl
from licet.settings import Settings


@hookimpl
def licet_approval_service(settings: Settings) -> Sequence[ApprovalService]:
    """Those of `queue` and `webhook` that settings name."""
    return tuple(_services(settings))


def _services(settings: Settings) -> Iterator[ApprovalService]:
    named = settings.approvals.services or ()
    if "queue" in named:
        from licet.approvals.queue import QueueService

        yield QueueService()
    if "webhook" in named:
        try:
            import jwt  # noqa: F401 - looked for at once, not when the first answer is there

            from licet.approvals.webhook.service import WebhookService
        except ImportError as missing:
            raise InvalidSettings(
                f"the webhook needs `{missing.name}`, which is not installed",
                advice="install what it needs: `pip install 'licet[webhook]'`",
            ) from None
        yield WebhookService(settings)
