"""Proof by attack: small programs that try what a contract says can't be done, on this very host.

Every attack has a twin, the same program without walls, that must succeed, so that a broken attack can't pass
for protection; and an act that must still work, so that a broken sandbox can't either. The pieces:

- `attack` and `attacks`: the attacks, which are data; `conditions`: which of them mean something here;
- `scene`: where they take place; `targets`: what they aim at; `traces`: processes seen from outside;
- `prober`: runs them by an `order` each, and judges what a `trial` showed; `bare`: the twin;
- `direct`: a run in this process; `apart`: one in a host that may be killed, a `victim` that `hosts` made;
- `listening`: hears another process; `pace`: tells when a machine is too busy for time to show anything;
- `results`, `fingerprint` and `store`: the receipts, and how long they count;
- `standing`: what receipts say of a claim; `verification`: all attacks against all claims.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from licet.lazy import attribute_importer

if TYPE_CHECKING:
    from licet.probe.attack import Attack, Proof, Scenario
    from licet.probe.prober import Prober
    from licet.probe.results import ProbeResult, Receipts
    from licet.probe.scene import Scene
    from licet.probe.store import ReceiptStore
    from licet.probe.verification import Report, verify

__all__ = [
    "Attack",
    "ProbeResult",
    "Prober",
    "Proof",
    "ReceiptStore",
    "Receipts",
    "Report",
    "Scenario",
    "Scene",
    "verify",
]

_HOMES = {
    "Attack": "attack",
    "ProbeResult": "results",
    "Prober": "prober",
    "Proof": "attack",
    "ReceiptStore": "store",
    "Receipts": "results",
    "Report": "verification",
    "Scenario": "attack",
    "Scene": "scene",
    "verify": "verification",
}

__getattr__ = attribute_importer(__name__, _HOMES)
