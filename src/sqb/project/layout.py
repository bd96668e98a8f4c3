"""Where a project's files lie: finding its root, and reading all of its files in one scan.

Contents stay bytes here; the modules beside this one know what they mean.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from sqb.errors import SqbError
from sqb.project.names import stem

PROJECT_FILE = "sqlbuild_project.toml"
LOCAL_FILE = "sqlbuild_local.toml"
DBT_FILE = "dbt_project.yml"

_YAML = (".yml", ".yaml")
_CODE = (".sql", ".py")
#: Folders whose contents a later release brings to life, with the files that count in them.
_LATER: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("assets", (".py",)),
    ("audits", (".sql",)),
    ("checks", (".py",)),
    ("functions", _CODE),
    ("hooks", _CODE),
    ("loaders", (".py",)),
    ("materializations", (".py",)),
    ("tasks", (".py",)),
    ("tests/unit", (".sql",)),
)


class ProjectFiles(msgspec.Struct, frozen=True):
    """The files of a project: path relative to its root, with "/", to content."""

    models: dict[str, bytes]
    sources: dict[str, bytes]
    seeds: dict[str, bytes]
    seed_yaml: dict[str, bytes]
    macros: dict[str, bytes]
    #: Files of kinds that this release does not run yet.
    later: tuple[str, ...]


def find_project(start: Path) -> Path:
    """The nearest folder at or above ``start`` that holds ``sqlbuild_project.toml``."""
    folder = start.resolve()
    for candidate in (folder, *folder.parents):
        if (candidate / PROJECT_FILE).is_file():
            return candidate
    raise SqbError(
        "C001",
        f"there is no {PROJECT_FILE} in {folder} or a folder above it",
        help="run `sqb init` to start a project here, or name one with --project-dir",
    )


def work_folder(root: Path) -> Path:
    """``.sqb``: disposable, ignored by git; made if it is not there."""
    folder = root / ".sqb"
    if not folder.exists():
        folder.mkdir()
        (folder / ".gitignore").write_text("*\n")
    return folder


def read_files(root: Path) -> ProjectFiles:
    """Read every file of the project, in sorted order; hidden files and folders are left out.

    In the folder of a dbt project all files are dbt's, whatever their names.
    """
    base = os.fspath(root)
    if (root / DBT_FILE).is_file():
        return ProjectFiles({}, {}, {}, {}, {}, ())
    models: dict[str, bytes] = {}
    later: list[str] = []
    for path in _walk(base, "models"):
        if path.endswith(".sql"):
            models[path] = _read(base, path)
        elif path.endswith(".py") and stem(path) != "__init__":
            later.append(path)
    seeds: dict[str, bytes] = {}
    seed_yaml: dict[str, bytes] = {}
    for path in _walk(base, "seeds"):
        if path.endswith(".csv"):
            seeds[path] = _read(base, path)
        elif path.endswith(_YAML):
            seed_yaml[path] = _read(base, path)
    for folder, suffixes in _LATER:
        later += [p for p in _walk(base, folder) if p.endswith(suffixes) and stem(p) != "__init__"]
    return ProjectFiles(
        models=models,
        sources={p: _read(base, p) for p in _walk(base, "sources") if p.endswith(_YAML)},
        seeds=seeds,
        seed_yaml=seed_yaml,
        macros={
            p: _read(base, p)
            for p in _walk(base, "macros")
            if p.endswith(".py") and p.count("/") == 1
        },
        later=tuple(sorted(later)),
    )


def _walk(base: str, folder: str, links: frozenset[str] = frozenset()) -> Iterator[str]:
    try:
        with os.scandir(f"{base}/{folder}") as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise _unreadable(folder, error) from None
    for entry in entries:
        name = entry.name
        if name.startswith(".") or name == "__pycache__":
            continue
        path = f"{folder}/{name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(base, path, links)
        elif entry.is_symlink() and entry.is_dir():
            # A link that leads back above itself would be walked for ever.
            real = os.path.realpath(entry.path)
            here = os.path.realpath(f"{base}/{folder}")
            if real not in links and not f"{here}/".startswith(f"{real}/"):
                yield from _walk(base, path, links | {real})
        elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
            yield path


def _read(base: str, path: str) -> bytes:
    # Plain descriptors: a buffered file object costs about twice as much per small file.
    try:
        descriptor = os.open(f"{base}/{path}", os.O_RDONLY)
        try:
            content = os.read(descriptor, 65_536)
            if len(content) < 65_536:
                # On regular files a short read is the end of the file.
                return content
            chunks = [content]
            while content := os.read(descriptor, 1 << 20):
                chunks.append(content)
            return b"".join(chunks)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(path: str, error: OSError) -> SqbError:
    return SqbError(
        "P018",
        f"{path} can't be read: {error.strerror or error}",
        file=path,
        help="check that the file exists and that you may read it",
    )
