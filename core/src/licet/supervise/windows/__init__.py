"""Supervised processes on Windows: a Job Object holds the tree, overlapped pipes carry what it says.

From the outside in: `process` is the host's side of one run; `launch`, `job` and `pipes` are what it works
with; `winapi` and `layouts` are the system's own words. `commandline`, `environment` and `limits` are pure
and can be tested anywhere. `bootstrap` makes the new interpreter the guest.
"""
