"""Approvals: a person says yes to something specific, and exactly that runs, once.

The pieces, from what is shown to what runs:

- `forms`: what is asked, who answers, what an approval is; `clocks`: instants that no set clock extends;
- `showing`: the document that people are shown, whole, and the digest that their answer has to name;
  `spelling`: how it holds what there is; `comparing`: the difference to what was approved last;
  `deceptions`: what in it may deceive who reads it;
- `counting`: which answers count, and what they come to (rules 16 and 17); `covering`: what a grant that
  reaches further than once covers;
- `services`: who can be asked; `asking` asks all of them at once. `callback`, `queue` and `webhook` are
  services, the terminal is one of the command line; `tokens`: answers that somebody signed; `keys`: whose
  signature counts; `choosing`: which services settings name, out of what `plugin` and others offer;
- `freezing`: a request as bytes and back, as the store keeps it until the approval is over;
- `store`: approvals of one state directory, durable, shared by processes; it alone decides what is spent. Its
  parts: `steps` of a transaction, `rows` and `schema` of its tables, the file as a `database`, and the
  `presence` of those who use what was granted;
- `clerk`: each step recorded, then stored; `telling`: what its records say;
- `desk`: one approval from its asking to its use, for the runs of one runtime; `licet.permits` takes runs
  there.
"""

from __future__ import annotations

from licet.approvals.forms import Answer, ApprovalRequest, Person

__all__ = ["Answer", "ApprovalRequest", "Person"]
