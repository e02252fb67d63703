"""The `monty` backend of licet: a Python subset in the Monty interpreter, one worker process a run."""
