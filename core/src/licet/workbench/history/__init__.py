"""Runs of the past, as logs have them: told again, decided again, and what would have let them through."""
