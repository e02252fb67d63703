"""Totals of a shop's orders, as a table, and a summary as the value.

The input `orders` is a list of orders; amounts are whole cents, so that no total is rounded.
"""

from collections import defaultdict


def total(order):
    return sum(line["quantity"] * line["cents"] for line in order["lines"])


def money(cents):
    return f"{cents // 100:,}.{cents % 100:02d}"


by_customer = defaultdict(int)
by_status = defaultdict(int)
sold = defaultdict(int)

for order in orders:
    by_status[order["status"]] += total(order)
    if order["status"] != "refunded":
        by_customer[order["customer"]] += total(order)
        for line in order["lines"]:
            sold[line["sku"]] += line["quantity"]

print(f"{'customer':<24} {'total':>12}")
for customer, cents in sorted(by_customer.items(), key=lambda item: -item[1]):
    print(f"{customer:<24} {money(cents):>12}")
print(f"{'all':<24} {money(sum(by_customer.values())):>12}")

best = sorted(sold.items(), key=lambda item: (-item[1], item[0]))[0]

{
    "orders": len(orders),
    "paid": money(by_status["paid"]),
    "open": money(by_status["open"]),
    "best_seller": best[0],
    "customers": len(by_customer),
}
