"""A backend for licet from outside: code in an interpreter of its own."""

from licet_echo.backend import Echo

__all__ = ["Echo"]
