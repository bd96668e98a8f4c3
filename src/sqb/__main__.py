"""``python -m sqb``: the same as the command ``sqb``."""

from __future__ import annotations

from sqb.cli.entry import main

if __name__ == "__main__":
    main()
