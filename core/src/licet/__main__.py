"""`python -m licet`."""

from licet.cli import main

main()
