"""What is remembered of a dbt project between commands: its nodes and selections, by what dbt read.

Disposable files in ``.sqb/dbt``: several states of the project are kept, so that going back to a
branch, a target or a set of variables needs no dbt either. No secret is kept.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from sqb import cachefile
from sqb.dbt.nodes import DbtNode
from sqb.hashing import digest
from sqb.project.config_values import CatalogConfig

_VERSION = 1
#: So many states of a project are remembered, and so many selections of each.
_STATES = 12
_SELECTIONS = 40


class Place(msgspec.Struct, frozen=True):
    """Where the project writes, as its profile says; kept only where no secret is in it.

    ``catalog`` is None where sqb can't read the catalog itself.
    """

    profile: str
    target: str
    schema: str
    method: str
    catalog: CatalogConfig | None


class Known(msgspec.Struct, frozen=True):
    """One state of a project: every node, parents first. ``disabled`` are unique ids."""

    project: str
    dbt_version: str
    nodes: tuple[DbtNode, ...]
    disabled: tuple[str, ...] = ()
    place: Place | None = None

    def by_id(self) -> dict[str, DbtNode]:
        """The nodes by unique id."""
        return {node.unique_id: node for node in self.nodes}


class Memory:
    """The folder in which states are kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "known"

    def recall(self, key: str) -> Known | None:
        """The project as it was when dbt read what ``key`` stands for."""
        found = cachefile.read(self._state(key) / "nodes.mp", Known, _VERSION)
        if found is not None:
            with contextlib.suppress(OSError):
                os.utime(self._state(key))
        return found

    def remember(self, key: str, known: Known) -> None:
        """Keep a state; the ones unused for longest make room."""
        cachefile.write(self._state(key) / "nodes.mp", known, _VERSION)
        _keep(self._folder, _STATES)

    def latest(self) -> Known | None:
        """The state that was used last, whatever its key: to save work on a new one."""
        for folder in _newest_first(self._folder):
            found = cachefile.read(folder / "nodes.mp", Known, _VERSION)
            if found is not None:
                return found
        return None

    def recall_selection(self, key: str, arguments: Sequence[str]) -> tuple[str, ...] | None:
        """What dbt selected for these arguments, in this state."""
        return cachefile.read(self._selection(key, arguments), tuple[str, ...], _VERSION)

    def remember_selection(
        self, key: str, arguments: Sequence[str], unique_ids: Sequence[str]
    ) -> None:
        """Keep what dbt selected. The arguments must say all that the selection depends on."""
        path = self._selection(key, arguments)
        cachefile.write(path, tuple(unique_ids), _VERSION)
        _keep(path.parent, _SELECTIONS)

    def _state(self, key: str) -> Path:
        return self._folder / key[:32]

    def _selection(self, key: str, arguments: Sequence[str]) -> Path:
        return self._state(key) / "selected" / f"{digest(*arguments)[:32]}.mp"


def _newest_first(folder: Path) -> list[Path]:
    found: list[tuple[int, str]] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                found.append((entry.stat().st_mtime_ns, entry.path))
    return [Path(path) for _, path in sorted(found, reverse=True)]


def _keep(folder: Path, most: int) -> None:
    for path in _newest_first(folder)[most:]:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
