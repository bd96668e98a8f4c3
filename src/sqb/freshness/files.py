"""Files that are read as one table: which there are, and the version that they make together.

Taken from the file system alone, so that an unchanged project needs no JVM. As Spark does, names
that start with ``_`` or ``.`` are passed over.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from hashlib import blake2b
from pathlib import Path

import msgspec

_GLOB = frozenset("*?[")


class ListedFile(msgspec.Struct, frozen=True, order=True):
    """One file as it was seen."""

    path: str
    size: int
    mtime_ns: int


class Listing(msgspec.Struct, frozen=True):
    """The files of a source. ``base`` is the folder below which folder names may hold columns."""

    base: str
    files: tuple[ListedFile, ...]

    @property
    def version(self) -> str:
        """A hash of all paths, sizes and times; a file that comes, goes or changes moves it."""
        hasher = blake2b(digest_size=16)
        for file in self.files:
            hasher.update(self._told(file))
        return hasher.hexdigest()

    def marks(self) -> list[str]:
        """What tells each file from any other, in a few letters; in the order of the files."""
        return [blake2b(self._told(file), digest_size=8).hexdigest() for file in self.files]

    def partitions(self) -> dict[tuple[str, ...], str]:
        """The columns that folder names give, each way with the first file that lies so."""
        found: dict[tuple[str, ...], str] = {}
        for file in self.files:
            folders = Path(os.path.relpath(file.path, self.base)).parts[:-1]
            keys = tuple(folder.split("=", 1)[0] for folder in folders if "=" in folder)
            found.setdefault(keys, file.path)
        return found

    def since(self, marks: Collection[str]) -> tuple[Listing, Listing] | None:
        """The files that were there and those that came; None if one of ``marks`` is gone."""
        pairs = list(zip(self.files, self.marks(), strict=True))
        if not set(marks) <= {mark for _, mark in pairs}:
            return None
        then = tuple(file for file, mark in pairs if mark in marks)
        came = tuple(file for file, mark in pairs if mark not in marks)
        return Listing(self.base, then), Listing(self.base, came)

    def _told(self, file: ListedFile) -> bytes:
        name = os.path.relpath(file.path, self.base).encode("utf-8", "surrogateescape")
        return b"%d:%s:%d:%d;" % (len(name), name, file.size, file.mtime_ns)

    @property
    def newest_us(self) -> int:
        """When the youngest file was written."""
        return max(file.mtime_ns for file in self.files) // 1000


def list_files(path: str, root: Path) -> Listing:
    """The files at ``path``: a file, a folder with all below it, or a glob; sorted.

    Relative paths start at the project. A path that leads nowhere has no files. Raises ``OSError``
    where something is there and can't be looked at: its rows must not be left out unnoticed.
    """
    start = Path(path.removeprefix("file://")).expanduser()
    whole = Path(os.path.normpath(root / start))
    at = next((i for i, part in enumerate(whole.parts) if _GLOB & set(part)), None)
    if at is None or whole.exists():
        if whole.is_file():
            return Listing(str(whole.parent), _seen([] if _passed_over(whole.name) else [whole]))
        return Listing(str(whole), _seen(_below(whole)))
    base = Path(*whole.parts[:at])
    found: set[Path] = set()
    for match in base.glob("/".join(whole.parts[at:])):
        if any(_passed_over(part) for part in match.relative_to(base).parts):
            continue
        if match.is_dir():
            found.update(_below(match))
        else:
            found.add(match)
    return Listing(str(base), _seen(found))


def changed(listing: Listing) -> list[str]:
    """The listed files that are not what they were."""
    return [file.path for file in listing.files if _now(file) != file]


def _now(file: ListedFile) -> ListedFile | None:
    try:
        return _look(Path(file.path))
    except OSError:
        return None


def _below(folder: Path) -> list[Path]:
    found: list[Path] = []
    met: set[str] = set()
    for where, folders, files in os.walk(folder, onerror=_refuse, followlinks=True):
        real = os.path.realpath(where)
        if real in met:
            # a link back to a folder above would go on for ever
            folders.clear()
            continue
        met.add(real)
        folders[:] = [name for name in folders if not _passed_over(name)]
        found += [Path(where, name) for name in files if not _passed_over(name)]
    return found


def _refuse(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError | NotADirectoryError):
        raise error


def _passed_over(name: str) -> bool:
    """Does Spark leave a file or folder of this name alone?"""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _seen(paths: list[Path] | set[Path]) -> tuple[ListedFile, ...]:
    found = (_look(path) for path in paths)
    return tuple(sorted(file for file in found if file is not None))


def _look(path: Path) -> ListedFile | None:
    try:
        stat = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return ListedFile(str(path), stat.st_size, stat.st_mtime_ns)
