"""How large what a text makes can become, and how much there is to compare: known before it is evaluated.

The steps of the library say nothing of the size of one step: twenty times `.map(v, v + v)` are few steps and
a million times the text that they begin with, and comparing what `.map(v, [v, v])` makes doubles its time
with each of them.

Rules this module keeps:

- sizes are counted in cells, a character or an item each; what a request holds counts as `GIVEN`, whatever it
  is;
- a text that may make more than `MOST_MADE`, or compare more than `MOST_COMPARED`, is refused at load;
- an estimate is never too low: a list that a macro makes is as long as lists may be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from licet.policy.cel.tree import COMPARISONS, Refused, kind_of
from licet.policy.cel.values import MAX_ITEMS

GIVEN = 10_000
MOST_MADE = 40_000_000
MOST_COMPARED = 100_000_000
MOST_NESTED = 6
"""How many macros may stand inside one another."""

_COMPARISONS = COMPARISONS | {"@in"}
_PLAIN = frozenset((1, 2, 3, 4))
"""The types bool, int, uint and double, as the checker numbers them."""

_Sizes = Mapping[str, int]


def refuse_growth(tree: Any, kinds: Mapping[int, Any]) -> None:
    """Look at a checked tree, with what the checker found of each node.

    Raises:
        Refused: it may make or compare more than a condition may.
    """
    _Estimate(kinds).size(tree.expr, {}, 0)


@dataclass(slots=True)
class _Estimate:
    kinds: Mapping[int, Any]
    compared: int = 0

    def size(self, node: Any, sizes: _Sizes, loops: int, *, counts: bool = True) -> int:
        """The most cells that a node makes, where `sizes` are those of the variables of macros around it."""
        made = self._made(node, sizes, loops, counts)
        if made > MOST_MADE:
            raise Refused("it may make too large a value", node.id, "join and gather less in one condition")
        return 1 if self._is_plain(node) else made

    def _made(self, node: Any, sizes: _Sizes, loops: int, counts: bool) -> int:
        def size(one: Any) -> int:
            return self.size(one, sizes, loops, counts=counts)

        match kind_of(node):
            case "const":
                cells: int = node.const.ByteSize()
                return cells
            case "ident":
                return sizes.get(node.ident.name, GIVEN)
            case "select":
                return size(node.select.operand)
            case "list":
                return 1 + sum(map(size, node.list.elements))
            case "struct":
                return 1 + sum(size(part) for one in node.struct.entries for part in (one.map_key, one.value))
            case "loop":
                return self._loop(node, sizes, loops, counts)
            case "call":
                target = [size(node.call.target)] if node.call.HasField("target") else []
                parts = [*target, *map(size, node.call.args)]
                if node.call.function in _COMPARISONS:
                    self._compare(node, sum(parts) * (MAX_ITEMS if loops else 1), counts)
                return _of_call(node.call.function, parts)
        return GIVEN

    def _loop(self, node: Any, sizes: _Sizes, loops: int, counts: bool) -> int:
        if loops == MOST_NESTED:
            deeper = f"macros are nested deeper than {MOST_NESTED} levels"
            raise Refused(deeper, node.id, "split the condition")
        loop, nested = node.loop, loops + 1
        whole = self.size(loop.range, sizes, loops, counts=counts)
        start = self.size(loop.start, sizes, loops, counts=counts)
        inside = {**sizes, loop.variable: whole, loop.second or loop.variable: whole, loop.accu: 0}
        self.size(loop.condition, inside, nested, counts=counts)
        step = self.size(loop.step, inside, nested, counts=counts)
        # what each item adds whatever it holds comes as often as there are items
        alone = {**inside, loop.variable: 0, loop.second or loop.variable: 0}
        grown = start + step + MAX_ITEMS * self.size(loop.step, alone, nested, counts=False)
        return self.size(loop.result, {**sizes, loop.accu: grown}, loops, counts=counts)

    def _compare(self, node: Any, cells: int, counts: bool) -> None:
        self.compared += cells if counts else 0
        if self.compared > MOST_COMPARED:
            raise Refused("there is too much to compare", node.id, "split it into a list of shorter texts")

    def _is_plain(self, node: Any) -> bool:
        found = self.kinds.get(node.id)
        return found is not None and (found.primitive in _PLAIN or found.well_known in (2, 3))


def _of_call(function: str, parts: list[int]) -> int:
    if function == "_?_:_":
        return max(parts[1:])
    return parts[0] if function == "_[_]" else sum(parts)
