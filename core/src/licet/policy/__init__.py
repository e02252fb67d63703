"""Policy: documents, their patterns, and the stack that decides."""

from licet.policy.document import PolicyDocument
from licet.policy.live import LivePolicy
from licet.policy.load import MANAGED, PolicySource, load_stack
from licet.policy.patterns import Pattern
from licet.policy.stack import PolicyStack

__all__ = ["MANAGED", "LivePolicy", "Pattern", "PolicyDocument", "PolicySource", "PolicyStack", "load_stack"]
