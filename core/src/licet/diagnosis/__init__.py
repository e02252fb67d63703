"""What this host can enforce, by whom, and what could be switched on; it ends in a real forbidden act.

The pieces: `machine` looks at the host, and `facts` says what that means; `coverage` says who holds which
control, `unused` what could and does not; `ordeal` tries what is forbidden. `diagnose` does all of it, and
`document` is its form for programs.
"""

from __future__ import annotations

from licet.diagnosis.diagnose import Diagnosis, Verdict, diagnose

__all__ = ["Diagnosis", "Verdict", "diagnose"]
