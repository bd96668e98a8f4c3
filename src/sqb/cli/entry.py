"""The entry point of the command ``sqb``: into the project's warm Spark if there is one, else here.

Imports next to nothing: what a warm command takes is what is imported before it is handed over.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> NoReturn:
    """Run one command and leave with its exit code."""
    from sqb.cli.warm.client import hand_over

    code = hand_over(sys.argv[1:])
    if code is None:
        from sqb.cli.main import main as run_here

        run_here()
    sys.exit(code)
