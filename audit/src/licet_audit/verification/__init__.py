"""Verification of a log: what its bytes, its signatures and what was seen of it outside prove.

A pass maps parts of the files to what of them matters, in several processes where there is much, and one
judge reduces that in order. A part is accepted as a whole, or judged line by line.
"""
