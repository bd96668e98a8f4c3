"""What dbt reads to make a manifest, as one key: when it is unmoved, dbt need not be asked.

The key covers every file in the folders that the project and its packages name, the profile, the
variables, the environment as far as the project reads it, and the versions of dbt. A file is hashed
only when its size, times or inode moved since the last look.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

import msgspec

from sqb import cachefile
from sqb.dbt.layout import (
    VARS_FILE,
    install_folder,
    package_folders,
    read_packages,
    read_project_file,
)
from sqb.errors import SqbError
from sqb.hashing import digest
from sqb.project.layout import DBT_FILE

_VERSION = 1
_ENV = re.compile(rb"env_var\s*\(\s*['\"](\w+)['\"]")
#: Files beside ``dbt_project.yml`` that say something to dbt.
_SUFFIXES = (".yml", ".yaml")
_NAMES = frozenset({".dbtignore"})
_NEVER = frozenset({".git", ".sqb", "__pycache__"})
#: A file that was written so shortly before it was hashed may have been written again in the same
#: tick of the clock.
_RACY_NS = 2_000_000_000


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """A file as it was hashed: what ``stat`` said, its hash, the variables it names."""

    size: int
    mtime: int
    ctime: int
    inode: int
    sha: bytes
    env: tuple[str, ...] = ()


class Package(msgspec.Struct, frozen=True, array_like=True):
    """A package's folder and the folders in it that dbt reads."""

    root: str
    folders: tuple[str, ...]


class Layout(msgspec.Struct, frozen=True, array_like=True):
    """Where dbt reads, as found from files whose hash is ``key``. ``skip`` is never walked."""

    key: str
    packages: tuple[Package, ...]
    skip: tuple[str, ...]
    install: str


class Table(msgspec.Struct, frozen=True):
    """What the last look left. ``met`` are variables that dbt itself named while parsing."""

    looked: int
    layout: Layout | None = None
    files: dict[str, Mark] = {}
    met: tuple[str, ...] = ()


class Reading(msgspec.Struct, frozen=True):
    """One look: the key, and the variables of the environment that count in it.

    ``files`` stands for the files alone.
    """

    key: str
    files: str
    env: dict[str, str]
    layout: Layout
    hashed: int


class _Look:
    """The files of one look; hashes of unmoved ones are those of the table."""

    def __init__(self, table: Table) -> None:
        self.started = time.time_ns()
        self.known = table.files
        self.sure_before = table.looked - _RACY_NS
        self.files: dict[str, Mark] = {}
        self.hashed = 0

    def add(self, path: str, found: os.stat_result | None = None) -> Mark | None:
        """The mark of a file; None if it is not there."""
        mark = self.files.get(path)
        if mark is not None:
            return mark
        try:
            found = found or os.stat(path)  # noqa: PTH116 - a Path for each file costs as much again
            if not stat.S_ISREG(found.st_mode):
                return None
            mark = self.known.get(path)
            if mark is None or not self._stands(mark, found):
                self.hashed += 1
                with open(path, "rb") as file:  # noqa: PTH123
                    content = file.read()
                mark = Mark(
                    found.st_size,
                    found.st_mtime_ns,
                    found.st_ctime_ns,
                    found.st_ino,
                    sha256(content).digest(),
                    tuple(sorted({name.decode() for name in _ENV.findall(content)})),
                )
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(path, error) from None
        self.files[path] = mark
        return mark

    def _stands(self, mark: Mark, found: os.stat_result) -> bool:
        return (
            mark.size == found.st_size
            and mark.mtime == found.st_mtime_ns
            and mark.ctime == found.st_ctime_ns
            and mark.inode == found.st_ino
            and max(mark.mtime, mark.ctime) < self.sure_before
        )


def look(
    root: Path,
    store: Path,
    *,
    environ: Mapping[str, str],
    variables: Mapping[str, object],
    settings: Mapping[str, str],
    extra: Iterable[Path] = (),
    met: Iterable[str] | None = None,
) -> Reading:
    """One look at all that the manifest of the project at ``root`` is made from.

    ``store`` keeps the table between looks. ``settings`` are target, profile, versions and what
    else counts; ``extra`` are files outside, such as ``profiles.yml``. ``met`` replaces the
    variables that dbt named while parsing (``env_names``).
    """
    table = cachefile.read(store, Table, _VERSION) or Table(0)
    seen = _Look(table)
    names = tuple(sorted(met)) if met is not None else table.met
    layout = _layout(root, table.layout, seen, environ, variables)
    _read_all(layout, seen)
    for file in extra:
        seen.add(str(file))
    env = _environment(seen.files.values(), names, environ)
    hasher = sha256()
    for path in sorted(seen.files):
        hasher.update(path.encode("utf-8", "surrogateescape"))
        hasher.update(seen.files[path].sha)
    fields = [hasher.hexdigest(), layout.key, _flat(settings), _flat(env), _values(variables)]
    marks = seen.files
    if (
        seen.hashed
        or marks.keys() != table.files.keys()
        or (layout, names) != (table.layout, table.met)
    ):
        cachefile.write(store, Table(seen.started, layout, marks, names), _VERSION)
    return Reading(digest(*fields), fields[0], env, layout, seen.hashed)


def env_names(partial_parse: Path) -> tuple[str, ...]:
    """The variables that dbt met while it parsed, from its own ``partial_parse.msgpack``."""
    try:
        return tuple(
            sorted(msgspec.msgpack.decode(partial_parse.read_bytes(), type=_Parsed).env_vars)
        )
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return ()


class _Parsed(msgspec.Struct):
    env_vars: dict[str, object] = {}


def _layout(
    root: Path,
    known: Layout | None,
    seen: _Look,
    environ: Mapping[str, str],
    variables: Mapping[str, object],
) -> Layout:
    """The remembered layout, while the files that gave it are unmoved; else a new one."""
    base = str(root)
    if known is not None and known.packages[0].root == base:
        roots = [base, *package_folders(known.install)]
        if _layout_key(roots, seen, environ, variables) == known.key:
            return known
    project = read_project_file(root, environ=environ, variables=variables)
    packages = [project, *read_packages(project, environ=environ, variables=variables)]
    roots = [package.root for package in packages]
    skipped = {install_folder(project)}
    for package in packages:
        for folder in (package.target_path, package.log_path):
            skipped.add(os.path.normpath(Path(package.root, folder)))
    return Layout(
        key=_layout_key(roots, seen, environ, variables),
        packages=tuple(Package(p.root, p.folders) for p in packages),
        skip=tuple(sorted(skipped)),
        install=install_folder(project),
    )


def _layout_key(
    roots: Iterable[str],
    seen: _Look,
    environ: Mapping[str, str],
    variables: Mapping[str, object],
) -> str:
    fields: list[str] = []
    names: set[str] = set()
    for root in roots:
        for name in (DBT_FILE, VARS_FILE):
            mark = seen.add(f"{root}/{name}")
            fields += [root, mark.sha.hex() if mark is not None else ""]
            names.update(mark.env if mark is not None else ())
    fields.append(_flat({name: environ.get(name, "") for name in sorted(names)}))
    return digest(*fields, _values(variables))


def _read_all(layout: Layout, seen: _Look) -> None:
    """Look at every file that dbt reads."""
    skip = frozenset(layout.skip)
    for package in layout.packages:
        with os.scandir(package.root) as listing:
            for entry in listing:
                if entry.name.endswith(_SUFFIXES) or entry.name in _NAMES:
                    seen.add(entry.path)
        for folder in package.folders:
            _walk(os.path.normpath(Path(package.root, folder)), skip, seen, frozenset())


def _walk(folder: str, skip: frozenset[str], seen: _Look, links: frozenset[str]) -> None:
    try:
        with os.scandir(folder) as listing:
            entries = list(listing)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise _unreadable(folder, error) from None
    for entry in entries:
        path = entry.path
        if entry.name in _NEVER or path in skip:
            continue
        if entry.is_dir(follow_symlinks=False):
            _walk(path, skip, seen, links)
        elif entry.is_symlink() and entry.is_dir():
            # a link that leads back above itself would be walked for ever
            real = os.path.realpath(path)
            if real not in links and not f"{os.path.realpath(folder)}/".startswith(f"{real}/"):
                _walk(path, skip, seen, links | {real})
        else:
            with contextlib.suppress(FileNotFoundError):
                seen.add(path, entry.stat())


def _unreadable(path: str, error: OSError) -> SqbError:
    return SqbError(
        "P018",
        f"{path} can't be read: {error.strerror or error}",
        file=path,
        help="check that it exists and that you may read it",
    )


def _environment(
    marks: Iterable[Mark], met: Iterable[str], environ: Mapping[str, str]
) -> dict[str, str]:
    """The variables that count: named in files, met by dbt, or its own settings; set ones only."""
    names = set(met)
    for mark in marks:
        names.update(mark.env)
    names.update(name for name in environ if name.startswith("DBT_"))
    return {name: environ[name] for name in sorted(names) if name in environ}


def _flat(values: Mapping[str, str]) -> str:
    return digest(*(field for name in sorted(values) for field in (name, values[name])))


def _values(variables: Mapping[str, object]) -> str:
    return msgspec.json.encode(dict(variables), order="sorted", enc_hook=str).decode()
