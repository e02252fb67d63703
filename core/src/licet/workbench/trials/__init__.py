"""Trying the tests of policies: cases put to the functions that decide runs, and what they have shown."""
