"""Draw a report again from its results.json: `python -m sememe.ladder.report FOLDER`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sememe.errors import SememeError
from sememe.ladder.report import write_picture, write_report
from sememe.ladder.results import Results


def main() -> int:
    """Read results.json of a folder and write its report, or one picture of it."""
    parser = argparse.ArgumentParser(prog="python -m sememe.ladder.report", description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder of a ladder, or its results.json")
    parser.add_argument("--picture", type=Path, help="write only this .svg, for a README or slides")
    parser.add_argument("--theme", default="light", choices=("light", "dark", "auto"))
    given = parser.parse_args()
    try:
        results = Results.load(given.folder)
        if given.picture:
            path = write_picture(results, given.picture, theme=given.theme)
        else:
            folder = given.folder if given.folder.is_dir() else given.folder.parent
            path = write_report(results, folder)
    except SememeError as error:
        print(error, file=sys.stderr)
        return 2
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
