"""A long log, written line by line without a runtime, and what is asked of its index."""

from __future__ import annotations

import hashlib
import random
import statistics
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
from licet.state import StateDirectory, open_state
from licet_audit.index import Index, Wanted
from licet_audit.segments import SEGMENT_BYTES

RECORDS = 1_000_000

_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_PADDING = [f"{name}: asked enforced, offered partial" for name in ("memory_limit", "fresh_state") * 9]
_ENDS = ("exited",) * 15 + ("timeout", "memory_limit", "cancelled", "tool_limit", "backend_lost")


def long_log(path: Path, records: int) -> StateDirectory:
    """A log of `records` records of about 1.5 kB, five a run, in segments as the writer makes them."""
    state = open_state(path)
    folder = path / "log"
    folder.mkdir()
    bodies = _bodies(random.Random(8))
    file, size, prev = None, SEGMENT_BYTES, ""
    for seq in range(records):
        if size >= SEGMENT_BYTES:
            if file is not None:
                file.close()
            file, size = (folder / f"seg-{seq:020d}.jsonl").open("wb", buffering=2**20), 0
        line = orjson.dumps(
            {"v": 1, "log": state.log_id, "seq": seq, "prev": prev, **next(bodies)},
            option=orjson.OPT_SORT_KEYS,
        )
        prev = hashlib.sha256(b"\x00" + line).hexdigest()
        assert file is not None
        size += file.write(line + b"\n")
    if file is not None:
        file.close()
    return state


def _bodies(random: random.Random) -> Iterator[dict[str, Any]]:
    number = 0
    while True:
        run, number = f"01M{number:023d}", number + 1
        denied = random.random() < 0.1
        host = f"host{int(random.paretovariate(1)) % 500}.example.com"
        verdicts = [_verdict("run", "allow"), _verdict(f"network {host}:443", "deny" if denied else "allow")]
        subject = {
            "id": f"user{random.randrange(1000)}",
            "type": "agent",
            "tenant": f"t{random.randrange(20)}",
        }
        bodies: list[tuple[str, dict[str, Any]]] = [
            ("request", {"subject": subject, "imports": _PADDING[:12], "digests": {"code": "x" * 600}}),
            (
                "decision",
                {
                    "effect": "deny" if denied else "allow",
                    "policy": "licet.yaml@1",
                    "verdicts": verdicts,
                    "rules": [
                        {"rule": f"rule{random.randrange(40)}", "truth": "true", "leaves": _PADDING[:8]}
                    ],
                    "documents": ["x" * 300],
                },
            ),
            ("selection", {"backend": "monty", "candidates": [{"name": "x", "blockers": _PADDING}]}),
        ]
        backend = random.choice(("monty", "monty", "controlled_process"))
        opened = {"read": _PADDING, "write": []}
        started = (
            "execution",
            {"backend": backend, "isolation": "language", "claimed": {}, "opened": opened},
        )
        end = "policy_denied" if denied else random.choice(_ENDS)
        usage = {"wall_time": repr(random.random())}
        bodies += [
            ("access", {"action": "read", "target": "/x" * 400, "allowed": True}) if denied else started
        ]
        bodies += [("result", {"termination": end, "usage": usage, "observed": {"text": "x" * 900}})]
        at = _BEGIN + timedelta(seconds=number * 20)
        for step, (kind, body) in enumerate(bodies):
            stamp = f"{at:%Y-%m-%dT%H:%M:%S}.{step:09d}Z"
            yield {
                "writer": {"host": "h", "pid": 1, "instance": "i", "version": "0.1.0"},
                "kind": kind,
                "run_id": run,
                "time": stamp,
                "mono_ns": str(number * 10**9 + step),
                "body": body,
                **({"phase": "before"} if kind == "execution" else {}),
                **({"phase": "after"} if kind == "result" else {}),
            }


def _verdict(intent: str, effect: str) -> dict[str, Any]:
    return {
        "intent": intent,
        "effect": effect,
        "source": "declared",
        "by": ["licet.yaml:3 allow: run"],
        "line": 1,
    }


def questions(index: Index, runs: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """What is asked, by name."""
    middle = f"01M{runs // 2:023d}"
    day, next_day = "2026-01-20", "2026-01-21"
    pages = {
        "newest 50": {},
        "denied": {"decision": "deny"},
        "a subject": {"subject": "user7"},
        "a tenant": {"tenant": "t7"},
        "a backend": {"backend": "monty"},
        "a rule": {"rule": "rule7"},
        "a host": {"host": "host1.example.com"},
        "a rare host": {"host": "host37.example.com"},
        "denied, timeout (none)": {"decision": "deny", "termination": "timeout"},
        "denied, on monty (none)": {"decision": "deny", "backend": "monty"},
        "a day": {"since": day, "until": next_day},
        "a day, denied": {"since": day, "until": next_day, "decision": "deny"},
        "a host and a rule": {"host": "host2.example.com", "rule": "rule7"},
        "a host and a tenant": {"host": "host1.example.com", "tenant": "t7"},
        "a subject, denied": {"subject": "user7", "decision": "deny"},
        "a run": {"run": middle},
    }
    for name, fields in pages.items():
        wanted = Wanted(**fields, limit=50, newest_first=True)  # type: ignore[arg-type]
        yield f"page: {name}", lambda wanted=wanted: list(index.runs(wanted))  # type: ignore[misc]
    for name in ("newest 50", "denied", "denied, timeout (none)", "a rare host", "a day", "a subject"):
        wanted = Wanted(**pages[name])  # type: ignore[arg-type]
        yield f"count: {name}", lambda wanted=wanted: index.count(wanted)  # type: ignore[misc]
    yield "count: timeout, on monty", lambda: index.count(Wanted(termination="timeout", backend="monty"))
    yield "records of a run", lambda: index.records(middle)
    yield "a record", lambda: index.record(runs)
    for by in ("day", "effect", "termination", "denied", "rule"):
        yield f"all by {by}", lambda by=by: index.counts(Wanted(), by)  # type: ignore[misc]


def median_ms(work: Callable[[], object], rounds: int = 15) -> float:
    """Of one question, asked again and again."""
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e3
