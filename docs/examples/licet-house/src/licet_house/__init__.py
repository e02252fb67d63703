"""A decider with a policy of its own."""
