"""Policy: documents, their patterns, and the stack that decides."""

from typing import TYPE_CHECKING

from licet.lazy import attribute_importer

if TYPE_CHECKING:
    from licet.policy.document import PolicyDocument
    from licet.policy.live import LivePolicy
    from licet.policy.load import MANAGED, PolicySource, load_stack
    from licet.policy.patterns import Pattern
    from licet.policy.stack import PolicyStack

__all__ = ["MANAGED", "LivePolicy", "Pattern", "PolicyDocument", "PolicySource", "PolicyStack", "load_stack"]

_HOMES = {
    "MANAGED": "load",
    "LivePolicy": "live",
    "Pattern": "patterns",
    "PolicyDocument": "document",
    "PolicySource": "load",
    "PolicyStack": "stack",
    "load_stack": "load",
}

__getattr__ = attribute_importer(__name__, _HOMES)
