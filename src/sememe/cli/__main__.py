"""`python -m sememe.cli` is the command `sememe`."""

from sememe.cli import main

main()
