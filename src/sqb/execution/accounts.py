"""What bringing a table up to date takes: kept from its start until its record is made."""

from __future__ import annotations

import time

from sqb.refresh.cost import Estimate, Sizes
from sqb.state.record import Spent


class Account:
    """One table in one run. Until a way is taken, it is a rebuild."""

    def __init__(self) -> None:
        self.way = "full"
        self.code = ""
        self.guess: Estimate | None = None
        self.full: Estimate | None = None
        self.changed: int | None = None
        self.keys: int | None = None
        self.written: int | None = None
        self.lost = 0.0
        self._began = time.perf_counter()

    @property
    def seconds(self) -> float:
        """The time since the way that is taken began."""
        return time.perf_counter() - self._began

    def take(self, way: str, guess: Estimate | None, full: Estimate | None, sizes: Sizes) -> None:
        """A way was chosen."""
        self.way, self.guess, self.full, self.changed = way, guess, full, sizes.moved

    def rebuild(self, code: str) -> None:
        """The table is rebuilt instead: what was done so far is lost."""
        self.way, self.code, self.guess, self.lost = "full", code, None, self.seconds
        self.written = None
        self._began = time.perf_counter()

    def spent(self, run_id: str, size: int | None, rows: int | None) -> Spent:
        """What is recorded of it now; ``size`` is that of its inputs, ``rows`` those it holds."""
        guess = self.full if self.way == "full" else self.guess
        return Spent(
            run_id,
            self.way,
            round(self.seconds, 3),
            _rounded(guess.plain if guess is not None and self.way != "full" else None),
            _rounded(guess.seconds if guess is not None else None),
            _rounded(self.full.seconds if self.full is not None else None),
            size,
            self.changed,
            self.keys,
            self.written if self.written is not None else rows,
            self.code,
            round(self.lost, 3),
        )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
