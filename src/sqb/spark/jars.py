"""The jars that Spark needs, from the user's cache, from given paths, or from a Maven repository.

A coordinate names one jar, and that jar alone is fetched: there is no resolution of what it
depends on in turn. Iceberg's runtime and the SQLite driver need nothing else; for other packages
list every jar, or give a bundle.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TextIO

import msgspec

from sqb.errors import SqbError
from sqb.project.stores import is_store

#: The coordinates every session needs, with the sha256 of their jars.
DEFAULTS: dict[str, str] = {
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0": (
        "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82"
    ),
    "org.xerial:sqlite-jdbc:3.53.4.0": (
        "bcb1f51e36f940867e83342f9efbf5968ac44a6bef4d397bb4af7b17b45cd2fb"
    ),
}

#: Database drivers that only some projects need, by the dialect of the catalog's address.
DRIVERS: dict[str, str] = {"postgresql": "org.postgresql:postgresql:42.7.14"}
#: The clients of object stores, for projects whose warehouse is in one.
S3_BUNDLE = "org.apache.iceberg:iceberg-aws-bundle:1.12.0"
_EXTRA_SUMS: dict[str, str] = {
    "org.postgresql:postgresql:42.7.14": (
        "73914527305a40cce504b0d3d90b23caf565136912d607ae8ae7c5895512332c"
    ),
    S3_BUNDLE: "dd7e49ffa4ac9b215bed846581991259e3aec9bb2fa08d6cec029c46cd66d957",
}

#: A jar whose file name starts like this takes the place of the default one.
DEFAULT_PREFIXES = ("iceberg-spark-runtime", "sqlite-jdbc", "postgresql-", "iceberg-aws-bundle")

MAVEN_URL = "https://repo1.maven.org/maven2"

_PART = re.compile(r"\w[\w.+-]*")
_ATTEMPTS = 3
_TIMEOUT_SECONDS = 60
_CHUNK = 1 << 18
_GONE = (401, 403, 404, 410)
_HELP = (
    "set SQB_MAVEN_URL to a Maven repository that can be reached, "
    "or give the jar's path in `jars` of [spark]"
)


class Coordinate(msgspec.Struct, frozen=True):
    """``group:artifact:version[:classifier]``, with the path that Maven repositories derive."""

    group: str
    artifact: str
    version: str
    classifier: str = ""

    @property
    def file_name(self) -> str:
        ending = f"-{self.classifier}" if self.classifier else ""
        return f"{self.artifact}-{self.version}{ending}.jar"

    @property
    def path(self) -> str:
        from urllib.parse import quote

        parts = [*self.group.split("."), self.artifact, self.version, self.file_name]
        return "/".join(quote(part) for part in parts)


def parse_coordinate(text: str) -> Coordinate:
    """
    >>> parse_coordinate("org.postgresql:postgresql:42.7.4").path
    'org/postgresql/postgresql/42.7.4/postgresql-42.7.4.jar'
    """
    parts = text.strip().split(":")
    if len(parts) not in {3, 4} or not all(_PART.fullmatch(part) for part in parts):
        raise SqbError(
            "C004",
            f"`{text}` is not a coordinate",
            help="`packages` of [spark] takes `group:artifact:version[:classifier]`",
        )
    return Coordinate(*parts)


def cache_dir(environ: Mapping[str, str]) -> Path:
    """sqb's folder in the user's cache: SQB_CACHE_DIR, else below XDG_CACHE_HOME or ~/.cache."""
    if environ.get("SQB_CACHE_DIR"):
        return Path(environ["SQB_CACHE_DIR"]).expanduser().absolute()
    if environ.get("XDG_CACHE_HOME"):
        return Path(environ["XDG_CACHE_HOME"]).expanduser().absolute() / "sqb"
    return Path(environ.get("HOME") or Path.home()) / ".cache" / "sqb"


def resolve_jars(
    packages: Sequence[str],
    jars: Sequence[str],
    *,
    environ: Mapping[str, str],
    progress: TextIO | None,
    drivers: Sequence[str] = (),
) -> list[Path]:
    """The jars of a session: defaults and ``drivers``, the extra ``packages``, the given ``jars``.

    A given path or package that is named like a default takes its place, so a machine without a
    network needs no download. ``progress`` is where downloads are told: a bar if it is a
    terminal, one line each if not, silence if None.
    """
    given = [_given(path) for path in jars]
    extra = [parse_coordinate(text) for text in packages]
    taken = [path.name for path in given] + [coordinate.file_name for coordinate in extra]
    wanted = [parse_coordinate(text) for text in missing_defaults(taken, drivers)]
    folder = cache_dir(environ) / "jars"
    fetched = [
        _cached(coordinate, folder, environ=environ, progress=progress)
        for coordinate in [*wanted, *extra]
    ]
    return [*fetched, *given]


def missing_defaults(file_names: Sequence[str], drivers: Sequence[str] = ()) -> list[str]:
    """The default coordinates, and drivers, whose place none of these jars takes."""
    return [
        text
        for text in (*DEFAULTS, *drivers)
        if not any(_same_role(parse_coordinate(text).file_name, name) for name in file_names)
    ]


def drivers_of(catalog_uri: str) -> tuple[str, ...]:
    """The drivers that a catalog's address asks for beside the default ones.

    >>> drivers_of("postgresql+psycopg://me@db/lake")
    ('org.postgresql:postgresql:42.7.14',)
    """
    dialect = catalog_uri.partition(":")[0].partition("+")[0]
    found = DRIVERS.get("postgresql" if dialect == "postgres" else dialect)
    return (found,) if found else ()


def extras_of(catalog_uri: str, warehouse: str) -> tuple[str, ...]:
    """Everything that a lake asks for beside the defaults: drivers, and its store's client.

    >>> extras_of("sqlite:////data/catalog.db", "s3://lake/tables")
    ('org.apache.iceberg:iceberg-aws-bundle:1.12.0',)
    """
    return (*drivers_of(catalog_uri), *((S3_BUNDLE,) if is_store(warehouse) else ()))


def _given(text: str) -> Path:
    path = Path(text).expanduser().absolute()
    if not path.is_file():
        raise SqbError(
            "J002", f"the jar {text} does not exist", help="check the paths in `jars` of [spark]"
        )
    return path


def _same_role(default: str, name: str) -> bool:
    return any(default.startswith(p) and name.startswith(p) for p in DEFAULT_PREFIXES)


def _cached(
    coordinate: Coordinate,
    folder: Path,
    *,
    environ: Mapping[str, str],
    progress: TextIO | None,
) -> Path:
    # The group is part of the place: two groups may have an artifact of one name.
    target = folder / coordinate.group / coordinate.file_name
    if target.is_file():
        return target
    base = environ.get("SQB_MAVEN_URL") or MAVEN_URL
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _temporary(target.parent) as (temporary, file):
            _fetch(base, coordinate, file, progress)
            file.close()
            # Each process writes its own file, and whoever is last wins with the same bytes.
            temporary.replace(target)
    except OSError as error:
        raise SqbError(
            "J002",
            f"{coordinate.file_name} could not be kept in the cache: {error}",
            help="set SQB_CACHE_DIR to a folder that can be written",
        ) from error
    return target


@contextlib.contextmanager
def _temporary(folder: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    handle, name = tempfile.mkstemp(dir=folder, suffix=".part")
    path = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield path, file
    finally:
        path.unlink(missing_ok=True)


def _fetch(base: str, coordinate: Coordinate, file: IO[bytes], progress: TextIO | None) -> None:
    """Download and verify into ``file``; failing attempts start over."""
    from http.client import HTTPException
    from urllib.error import HTTPError

    for attempt in range(1, _ATTEMPTS + 1):
        file.seek(0)
        file.truncate()
        try:
            problem = _attempt(base, coordinate, file, progress)
        except HTTPError as error:
            problem = f"the repository answered {error.code}"
            error.close()
            if error.code in _GONE:
                break
        except (HTTPException, OSError, ValueError) as error:
            # The reason of an URLError; its own text would repeat the class.
            problem = str(getattr(error, "reason", None) or error) or type(error).__name__
        if problem is None:
            return
        if attempt < _ATTEMPTS:
            time.sleep(0.5 * attempt)
    raise SqbError("J002", f"{coordinate.path} could not be fetched: {problem}", help=_HELP)


def _attempt(
    base: str, coordinate: Coordinate, file: IO[bytes], progress: TextIO | None
) -> str | None:
    """One download; the answer is what is wrong with the bytes, None if they are right."""
    key = f"{coordinate.group}:{coordinate.artifact}:{coordinate.version}"
    pinned = DEFAULTS.get(key) or _EXTRA_SUMS.get(key)
    if pinned is not None:
        digest, expected = hashlib.sha256(), pinned
    else:
        with _open(base, coordinate.path + ".sha1") as answer:
            words = answer.read(4096).decode("ascii", errors="replace").split()
        digest, expected = hashlib.sha1(usedforsecurity=False), words[0].lower() if words else ""
    with _open(base, coordinate.path) as answer:
        length = answer.headers.get("Content-Length") if hasattr(answer, "headers") else None
        total = int(length) if length else None
        for chunk in _told(answer, coordinate.file_name, total, progress):
            digest.update(chunk)
            file.write(chunk)
    if total is not None and file.tell() != total:
        return f"the download ended after {file.tell()} of {total} bytes"
    if digest.hexdigest() != expected:
        return f"its {digest.name} is not the expected one"
    return None


def _open(base: str, path: str) -> IO[bytes]:
    from urllib.parse import unquote, urlsplit, urlunsplit
    from urllib.request import Request, urlopen

    parts = urlsplit(base)
    if parts.scheme not in {"http", "https", "file"}:
        raise ValueError("SQB_MAVEN_URL must start with https://, http:// or file://")
    host = parts.netloc.rpartition("@")[2]
    address = urlunsplit((parts.scheme, host, f"{parts.path.rstrip('/')}/{path}", "", ""))
    request = Request(address, headers={"User-Agent": "sqb"})
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        request.add_unredirected_header(
            "Authorization", "Basic " + base64.b64encode(login).decode("ascii")
        )
    opened: IO[bytes] = urlopen(request, timeout=_TIMEOUT_SECONDS)
    return opened


def _told(
    answer: IO[bytes], name: str, total: int | None, progress: TextIO | None
) -> Iterator[bytes]:
    """The chunks of ``answer``, with the progress of reading them told on the way."""
    chunks = iter(lambda: answer.read(_CHUNK), b"")
    if progress is None:
        yield from chunks
    elif not progress.isatty():
        size = f" ({total / 1e6:.0f} MB)" if total else ""
        print(f"fetching {name}{size}", file=progress, flush=True)
        yield from chunks
    else:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
        with Progress(*columns, console=Console(file=progress), transient=True) as bar:
            task = bar.add_task(f"fetching {name}", total=total)
            for chunk in chunks:
                yield chunk
                bar.advance(task, len(chunk))


def main() -> int:
    """``python -m sqb.spark.jars``: fill the cache with the default jars."""
    try:
        paths = resolve_jars((), (), environ=os.environ, progress=sys.stderr)
    except SqbError as error:
        print(f"error[{error.code}]: {error.message}\nhelp: {error.help}", file=sys.stderr)
        return error.exit_code
    for path in paths:
        print(path)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
