"""`python -m r1pipe`."""

from r1pipe.cli import main

main()
