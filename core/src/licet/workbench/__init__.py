"""Tools for the authors of policies: pure functions over the very values that decide.

One module an idea. Nothing here decides anything: what a policy permits is asked of the stack, of
`licet.rules` and of `licet.prepare`, so that a tool and a run can't disagree.
"""
