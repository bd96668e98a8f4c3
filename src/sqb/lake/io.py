"""Bytes of the lake: reads, durable writes and removals by location.

A location is a plain absolute path, a ``file:`` URI, or in an object store (see ``stores``). One
place has several spellings, so compare them with ``normalised``.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, TypeVar

from sqb.errors import SqbError
from sqb.lake import stores
from sqb.lake.stores import Listed
from sqb.project.stores import SUPPORTED, is_store, split_store

__all__ = [
    "Listed",
    "at_once",
    "exists",
    "file_size",
    "files_below",
    "is_local",
    "is_within",
    "local_path",
    "normalised",
    "open_file",
    "parents",
    "read_bytes",
    "remove",
    "remove_empty_folders",
    "write_new",
]

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*):")
_GZIP_MAGIC = b"\x1f\x8b"
_AT_ONCE = 8

T = TypeVar("T")


def normalised(location: str) -> str:
    """The one spelling of a location: an absolute path without scheme, or ``s3://bucket/key``.

    Nothing is percent-decoded: Hadoop and pyiceberg both store such paths as they are.

    >>> normalised("file:/lake/a//b"), normalised("file:///lake/a/b/"), normalised("/lake/a/b")
    ('/lake/a/b', '/lake/a/b', '/lake/a/b')
    >>> normalised("s3a://lake/a/b/")
    's3://lake/a/b'
    """
    found = _SCHEME.match(location)
    if found is None:
        return os.path.abspath(location)  # noqa: PTH100 - links are left as they are
    if found.group(1).lower() != "file":
        store = split_store(location)
        if store is None:
            raise SqbError(
                "C007",
                f"files at `{found.group(1)}:…` can't be read or written",
                help=f"a warehouse is {SUPPORTED}",
            )
        return f"s3://{'/'.join(store)}".rstrip("/")
    path = location[found.end() :]
    if path.startswith("//"):
        host, slash, rest = path[2:].partition("/")
        path = slash + rest if host in {"", "localhost"} else path
    return os.path.abspath(path)  # noqa: PTH100


def is_local(location: str) -> bool:
    """Whether a location is on a local or mounted file system.

    >>> is_local("/lake/t"), is_local("file:/lake/t"), is_local("s3://lake/t")
    (True, True, False)
    """
    found = _SCHEME.match(location)
    return found is None or found.group(1).lower() == "file"


def local_path(location: str) -> Path:
    """The file that a location on a file system names."""
    assert not is_store(location)
    return Path(normalised(location))


def parents(location: str) -> list[str]:
    """The folders above a normalised location, nearest first.

    >>> parents("/lake/a/b"), parents("s3://lake/a/b")
    (['/lake/a', '/lake', '/'], ['s3://lake/a', 's3://lake'])
    """
    store = split_store(location)
    root, path = ("/", location[1:]) if store is None else (f"s3://{store[0]}", store[1])
    names = path.split("/")[:-1]
    start = root.rstrip("/")
    below = ["/".join([start, *names[:count]]) for count in range(len(names), 0, -1)]
    return [*below, root]


def is_within(location: str, folder: str) -> bool:
    """Whether a location lies below a folder.

    >>> is_within("file:/lake/db/t", "/lake/db"), is_within("/lake/db2/t", "/lake/db")
    (True, False)
    """
    return normalised(location).startswith(normalised(folder).rstrip("/") + "/")


def read_bytes(location: str) -> bytes:
    """The content of a file; a compressed one is unpacked.

    Raises ``FileNotFoundError`` and other ``OSError`` as they come, also for broken compression:
    what they mean to the user is known only to the caller.
    """
    data = stores.read(location) if is_store(location) else local_path(location).read_bytes()
    if not data.startswith(_GZIP_MAGIC):
        return data
    try:
        return gzip.decompress(data)
    except (EOFError, zlib.error) as error:
        raise OSError(f"broken gzip data in {location}: {error}") from error


def open_file(location: str) -> BinaryIO:
    """A file as it stands, opened for reading."""
    if is_store(location):
        return BytesIO(stores.read(location))
    return local_path(location).open("rb")


def exists(location: str) -> bool:
    """Is there a file? What can't be told raises."""
    return file_size(location) is not None


def file_size(location: str) -> int | None:
    """The bytes of a file; None if it is gone."""
    if is_store(location):
        return stores.size(location)
    try:
        return local_path(location).stat().st_size
    except (FileNotFoundError, NotADirectoryError):
        return None


def at_once(call: Callable[[str], T], locations: Iterable[str]) -> list[T]:
    """One answer for each location, in order; several at once where each is a call to a store."""
    found = list(locations)
    if len(found) < 2 or not any(map(is_store, found)):
        return [call(location) for location in found]
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(call, found))


def write_new(location: str, data: bytes) -> None:
    """Write a file that must not exist yet, and return once it would survive a power cut.

    Raises ``FileExistsError`` instead of overwriting. A crash can leave a part of the file, so
    nothing may refer to it before this returns.
    """
    if is_store(location):
        stores.write_new(location, data)
        return
    path = local_path(location)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_written(location, error) from error
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        raise
    except OSError as error:
        raise _not_written(location, error) from error
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        _sync_folder(path.parent)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise _not_written(location, error) from error


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _not_written(location: str, error: OSError) -> SqbError:
    return SqbError(
        "X004",
        f"{location} can't be written: {error.strerror}",
        file=location,
        help="check the free space and the permissions of the warehouse folder",
        exit_code=1,
    )


def files_below(location: str) -> Iterator[Listed]:
    """Every file below a folder; a checksum counts with the file beside it."""
    if is_store(location):
        yield from stores.files_below(location)
        return
    for folder, _, names in os.walk(normalised(location)):
        there = set(names)
        for name in names:
            if name.startswith(".") and name.endswith(".crc") and name[1:-4] in there:
                continue
            path = os.path.join(folder, name)  # noqa: PTH118 - links are left as they are
            try:
                found = os.stat(path)  # noqa: PTH116
            except FileNotFoundError:
                continue
            yield Listed(path, found.st_size, found.st_mtime)


def remove_empty_folders(location: str) -> None:
    """Remove a folder and those below it that hold nothing; what holds a file stays."""
    if is_store(location):
        return  # there are none
    for folder, _, _ in os.walk(normalised(location), topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(folder)  # noqa: PTH106


def remove(location: str) -> bool:
    """Remove a file, with the checksum that Hadoop keeps beside it; False if there was none."""
    if is_store(location):
        return stores.remove(location)
    path = local_path(location)
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True
