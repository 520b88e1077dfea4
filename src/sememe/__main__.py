"""`python -m sememe` is the command `sememe`."""

from sememe.cli import main

if __name__ == "__main__":
    main()
