"""Tools of a shop, for `licet run --tools shop.py`: what code of a model may call, if policy lets it.

They run outside of any sandbox, with all rights of whoever starts licet. Each refund is a line in
`refunds.jsonl` beside this file, in place of the bank.
"""

from __future__ import annotations

import json
from pathlib import Path

import licet

BOOK = Path(__file__).with_name("refunds.jsonl")
ORDERS = {
    "A-1042": {"customer": "Ada", "paid": 129, "state": "returned"},
    "A-1043": {"customer": "Grace", "paid": 48, "state": "delivered"},
}


@licet.tool(idempotent=True)
def find(order: str) -> dict[str, str | int]:
    """Look an order up."""
    return ORDERS[order]


@licet.tool
def refund(order: str, amount: int, reason: str) -> str:
    """Pay money back to whoever paid for an order."""
    with BOOK.open("a", encoding="utf-8") as book:
        book.write(json.dumps({"order": order, "amount": amount, "reason": reason}) + "\n")
    return f"paid {amount} back to {ORDERS[order]['customer']}"
