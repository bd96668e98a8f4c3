"""Files in object stores, by the client that pyiceberg configures.

A store's settings come with the lake that is opened (``use``); nothing is imported and nothing
connects before the first file is asked for. What a store can't do or refuses is ``L005``; a file
that is not there is ``FileNotFoundError``, as on a file system.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from sqb.errors import SqbError
from sqb.project.stores import completed, split_store

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


class Listed(NamedTuple):
    """A file that was found by listing a folder: its place, bytes, and last change."""

    location: str
    size: int
    modified: float


class _Known:
    """What this process knows of stores. One bucket is one store, whoever asks.

    ``others`` is for buckets that nobody named: as the project's own lake, if that says anything.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.settings: dict[str, dict[str, str]] = {}
        self.others: dict[str, str] | None = None
        self.clients: dict[str, tuple[dict[str, str], FileSystem]] = {}


_known = _Known()


def use(warehouse: str, properties: Mapping[str, str]) -> None:
    """Open the bucket of the project's warehouse with these settings, and buckets nobody named.

    Raises ``C007`` if the process has the bucket open on another server: the two would be mixed up.
    """
    found = split_store(warehouse)
    settings = completed(properties)
    with _known.lock:
        if found is not None:
            before = _known.settings.get(found[0])
            if before is not None and before.get("s3.endpoint") != settings.get("s3.endpoint"):
                raise SqbError(
                    "C007",
                    f"the bucket `{found[0]}` is in use at another `s3.endpoint`",
                    help="open lakes of one bucket name on two servers in two processes",
                )
            _known.settings[found[0]] = settings
        speaks = found is not None or any(name.startswith("s3.") for name in settings)
        _known.others = settings if speaks else None


def use_beside(warehouse: str, properties: Mapping[str, str]) -> None:
    """Open the bucket of another warehouse with these settings, if it is not known already."""
    found = split_store(warehouse)
    if found is not None:
        with _known.lock:
            _known.settings.setdefault(found[0], completed(properties))


def forget() -> None:
    """Know no store and have no client any more."""
    with _known.lock:
        _known.settings.clear()
        _known.others = None
        _known.clients.clear()


def read(location: str) -> bytes:
    """The content of a file."""
    fs, path = _file(location)
    with _told(location), fs.open_input_file(path) as file:
        data: bytes = file.read()
    return data


def write_new(location: str, data: bytes) -> None:
    """Write a file that is not there yet; it appears whole or not at all.

    The look before is no lock. It need not be: names of files hold what is unique to their writer.
    """
    if size(location) is not None:
        raise FileExistsError(location)
    fs, path = _file(location)
    with _told(location), fs.open_output_stream(path) as file:
        file.write(data)


def size(location: str) -> int | None:
    """The bytes of a file; None if there is none."""
    from pyarrow.fs import FileType

    fs, path = _file(location)
    with _told(location):
        found = fs.get_file_info(path)
    return int(found.size) if found.type == FileType.File else None


def remove(location: str) -> bool:
    """Remove a file; False if there was none."""
    fs, path = _file(location)
    try:
        with _told(location):
            fs.delete_file(path)
    except FileNotFoundError:
        return False
    return True


def files_below(location: str) -> Iterator[Listed]:
    """Every file below a prefix; empty objects that stand for folders are none."""
    from pyarrow.fs import FileSelector, FileType

    fs, path = _file(location)
    with _told(location):
        found = fs.get_file_info(FileSelector(path, allow_not_found=True, recursive=True))
    for info in found:
        if info.type == FileType.File:
            modified = info.mtime.timestamp() if info.mtime is not None else float("inf")
            yield Listed(f"s3://{info.path}", int(info.size), modified)


def reach(location: str) -> None:
    """Ask for the bucket of a location; raises ``L005`` if there is none or it can't be asked."""
    from pyarrow.fs import FileType

    fs, path = _file(location)
    bucket = path.partition("/")[0]
    with _told(location):
        found = fs.get_file_info(bucket)
    if found.type == FileType.NotFound:
        raise SqbError(
            "L005",
            f"there is no bucket `{bucket}`",
            file=location,
            help="create it, or mend `warehouse` of [catalog]",
        )


@contextlib.contextmanager
def answering(what: str) -> Iterator[None]:
    """Tell a store's refusal as ``L005`` and a catalog's as ``L001`` where pyiceberg works on
    ``what`` by itself."""
    try:
        yield
    except Exception as error:
        if isinstance(error, OSError) and "AWS Error" in str(error):
            raise _refused(what, error) from error
        if _of_a_catalog(error):
            raise _unusable(what, error) from error
        raise


def _of_a_catalog(error: Exception) -> bool:
    from pyiceberg.exceptions import RESTError
    from requests import RequestException
    from sqlalchemy.exc import SQLAlchemyError

    return isinstance(error, RESTError | RequestException | SQLAlchemyError)


def _unusable(what: str, error: Exception) -> SqbError:
    # SQLAlchemy wraps what the database said in the statement and a link
    text = " ".join(str(getattr(error, "orig", None) or error).split())
    return SqbError(
        "L001",
        f"the catalog can't be used for {what}: {text}",
        help="is the server up, and are address and login in `[catalog]` right?",
    )


def _file(location: str) -> tuple[FileSystem, str]:
    """The client of a location, and the path that it knows the file by."""
    found = split_store(location)
    assert found is not None
    bucket, key = found
    return _client(bucket, location), f"{bucket}/{key}".rstrip("/")


def _client(bucket: str, location: str) -> FileSystem:
    with _known.lock:
        settings = _known.settings.get(bucket, _known.others)
        if settings is None:
            # Guessing would mean to search this machine and the network for keys, at each look.
            raise SqbError(
                "L005",
                f"nothing says how to open the bucket of {location}",
                file=location,
                help="give the `s3.*` settings of its catalog",
            )
        opened = _known.clients.get(bucket)
        if opened is None or opened[0] != settings:
            from pyiceberg.io.pyarrow import PyArrowFileIO

            # Not by location: pyiceberg takes `?` and `#` in a key for parts of a URL.
            with _told(location):
                opened = settings, PyArrowFileIO(settings).fs_by_scheme("s3", bucket)
            _known.clients[bucket] = opened
        return opened[1]


@contextlib.contextmanager
def _told(location: str) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, FileExistsError):
        raise
    except (OSError, ValueError) as error:  # pyarrow's own errors are one or the other
        raise _refused(location, error) from error


def _refused(what: str, error: Exception) -> SqbError:
    return SqbError(
        "L005",
        f"the object store did not serve {what}: {error}",
        help="check `s3.endpoint`, `s3.region` and the keys in [catalog.properties], and what they "
        "are allowed to do in the bucket",
    )
