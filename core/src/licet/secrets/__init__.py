"""Secrets in what code leaves behind: found by their shape, and by a detector that others keep."""
