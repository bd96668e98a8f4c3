"""Where jars come from, that wrong bytes are refused, and what stands in for a default."""

from __future__ import annotations

import base64
import hashlib
import io
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sqb.errors import SqbError
from sqb.spark import jars as jars_module
from sqb.spark.jars import DEFAULTS, cache_dir, parse_coordinate, resolve_jars

EXTRA = "org.example:extra_2.13:1.0"
EXTRA_PATH = "/org/example/extra_2.13/1.0/extra_2.13-1.0.jar"


class Repository(ThreadingHTTPServer):
    """A Maven repository that remembers what was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.logins: list[str | None] = []
        self.failures = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def publish(self, path: str, content: bytes) -> None:
        self.files[path] = content
        self.files[path + ".sha1"] = hashlib.sha1(content).hexdigest().encode() + b"  a.jar\n"


class Handler(BaseHTTPRequestHandler):
    server: Repository

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.logins.append(self.headers.get("Authorization"))
        content = self.server.files.get(self.path)
        if self.server.failures > 0:
            self.server.failures -= 1
            self.send_error(503)
        elif content is None:
            self.send_error(404)
        else:
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Keep the test output clean."""


@pytest.fixture
def repository() -> Iterator[Repository]:
    with Repository() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def environ(repository: Repository, tmp_path: Path) -> dict[str, str]:
    return {"SQB_MAVEN_URL": repository.url, "SQB_CACHE_DIR": str(tmp_path / "cache")}


@pytest.fixture
def local_defaults(tmp_path: Path) -> tuple[str, ...]:
    """Files named like both defaults, so that a test is about the extra package alone."""
    names = ("iceberg-spark-runtime-4.1_2.13-9.jar", "sqlite-jdbc-9.jar")
    for name in names:
        (tmp_path / name).write_bytes(b"jar")
    return tuple(str(tmp_path / name) for name in names)


def test_given_jars_named_like_the_defaults_need_no_network(
    repository: Repository, environ: dict[str, str], local_defaults: tuple[str, ...]
) -> None:
    found = resolve_jars((), local_defaults, environ=environ, progress=None)
    assert [str(path) for path in found] == list(local_defaults)
    assert repository.asked == []


def test_a_default_is_fetched_once_and_only_with_its_pinned_sha256(
    repository: Repository,
    environ: dict[str, str],
    local_defaults: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    coordinate = next(text for text in DEFAULTS if "sqlite" in text)
    path = "/" + parse_coordinate(coordinate).path
    repository.publish(path, b"the driver")
    iceberg = local_defaults[:1]
    with pytest.raises(SqbError, match="sha256 is not the expected one"):
        resolve_jars((), iceberg, environ=environ, progress=None)
    assert not list(cache_dir(environ).rglob("*.*ar*")), "nothing wrong is kept"
    monkeypatch.setitem(jars_module.DEFAULTS, coordinate, hashlib.sha256(b"the driver").hexdigest())
    repository.asked.clear()
    for _ in range(2):
        found = resolve_jars((), iceberg, environ=environ, progress=None)
        assert found[0].read_bytes() == b"the driver"
    assert repository.asked == [path]


def test_a_package_is_verified_by_the_repositorys_sha1(
    repository: Repository, environ: dict[str, str], local_defaults: tuple[str, ...]
) -> None:
    repository.publish(EXTRA_PATH, b"extra")
    found = resolve_jars([EXTRA], local_defaults, environ=environ, progress=None)
    assert [path.name for path in found] == [
        "extra_2.13-1.0.jar",
        *(Path(path).name for path in local_defaults),
    ]
    assert repository.asked == [EXTRA_PATH + ".sha1", EXTRA_PATH]


def test_a_package_named_like_a_default_takes_its_place(
    repository: Repository, environ: dict[str, str], local_defaults: tuple[str, ...]
) -> None:
    repository.publish("/org/xerial/sqlite-jdbc/9.9/sqlite-jdbc-9.9.jar", b"other")
    packages = ["org.xerial:sqlite-jdbc:9.9"]
    found = resolve_jars(packages, local_defaults[:1], environ=environ, progress=None)
    assert found[0].name == "sqlite-jdbc-9.9.jar"
    assert len(found) == 2


@pytest.mark.parametrize("content", [b"spoilt", b""])
def test_bytes_that_do_not_match_are_refused_and_not_kept(
    repository: Repository,
    environ: dict[str, str],
    local_defaults: tuple[str, ...],
    content: bytes,
) -> None:
    repository.publish(EXTRA_PATH, b"extra")
    repository.files[EXTRA_PATH] = content
    with pytest.raises(SqbError, match="sha1") as caught:
        resolve_jars([EXTRA], local_defaults, environ=environ, progress=None)
    assert caught.value.code == "J002"
    assert [path for path in cache_dir(environ).rglob("*") if path.is_file()] == []


def test_a_server_that_stumbles_is_asked_again(
    repository: Repository, environ: dict[str, str], local_defaults: tuple[str, ...]
) -> None:
    repository.publish(EXTRA_PATH, b"extra")
    repository.failures = 1
    assert resolve_jars([EXTRA], local_defaults, environ=environ, progress=None)


@pytest.mark.parametrize(
    ("base", "said"),
    [
        (None, "the repository answered 404"),
        ("http://me:hunter2@127.0.0.1:1/maven", "refused"),
        ("ftp://127.0.0.1/maven", "must start with https://"),
    ],
)
def test_a_failed_fetch_names_the_path_and_the_ways_out_but_no_password(
    environ: dict[str, str], local_defaults: tuple[str, ...], base: str | None, said: str
) -> None:
    environ |= {"SQB_MAVEN_URL": base} if base else {}
    with pytest.raises(SqbError, match=said) as caught:
        resolve_jars([EXTRA], local_defaults, environ=environ, progress=None)
    error = caught.value
    assert (error.code, EXTRA_PATH[1:] in error.message) == ("J002", True)
    assert "SQB_MAVEN_URL" in (error.help or "")
    assert "jars" in (error.help or "")
    assert "hunter2" not in f"{error.message} {error.help}"


def test_a_login_in_the_repositorys_address_is_sent_as_basic_auth(
    repository: Repository, environ: dict[str, str], local_defaults: tuple[str, ...]
) -> None:
    repository.publish("/m" + EXTRA_PATH, b"extra")
    environ["SQB_MAVEN_URL"] = repository.url.replace("//", "//me:p%40ss@") + "/m/"
    resolve_jars([EXTRA], local_defaults, environ=environ, progress=None)
    assert set(repository.logins) == {"Basic " + base64.b64encode(b"me:p@ss").decode()}


def test_two_fetches_at_once_end_with_one_whole_jar(
    repository: Repository, environ: dict[str, str], local_defaults: tuple[str, ...]
) -> None:
    content = b"x" * 3_000_000
    repository.publish(EXTRA_PATH, content)
    results: list[list[Path]] = []

    def fetch() -> None:
        results.append(resolve_jars([EXTRA], local_defaults, environ=environ, progress=None))

    threads = [threading.Thread(target=fetch) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert {result[0].read_bytes() == content for result in results} == {True}
    assert [path.suffix for path in cache_dir(environ).rglob("*") if path.is_file()] == [".jar"]


@pytest.mark.parametrize("terminal", [False, True])
def test_a_download_is_told_where_it_is_asked_for(
    repository: Repository,
    environ: dict[str, str],
    local_defaults: tuple[str, ...],
    terminal: bool,
) -> None:
    repository.publish(EXTRA_PATH, b"extra")
    stream = io.StringIO()
    stream.isatty = lambda: terminal  # type: ignore[method-assign]
    resolve_jars([EXTRA], local_defaults, environ=environ, progress=stream)
    told = stream.getvalue()
    assert "fetching extra_2.13-1.0.jar" in told
    assert ("\x1b" in told) is terminal


@pytest.mark.parametrize("text", ["a:b", "a:b:c:d:e", "a::c", "a:../b:c", "a:b:.."])
def test_a_text_that_is_no_coordinate_is_refused(text: str) -> None:
    with pytest.raises(SqbError, match="not a coordinate") as caught:
        parse_coordinate(text)
    assert caught.value.code == "C004"


def test_a_given_jar_must_exist(environ: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(SqbError, match="does not exist") as caught:
        resolve_jars((), [str(tmp_path / "no.jar")], environ=environ, progress=None)
    assert caught.value.code == "J002"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"SQB_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/a"),
        ({"XDG_CACHE_HOME": "/b", "HOME": "/c"}, "/b/sqb"),
        ({"HOME": "/c"}, "/c/.cache/sqb"),
    ],
)
def test_the_cache_follows_the_users_variables(environ: dict[str, str], expected: str) -> None:
    assert cache_dir(environ) == Path(expected)


def test_a_cache_that_cannot_be_written_is_an_error_with_a_way_out(
    repository: Repository,
    environ: dict[str, str],
    local_defaults: tuple[str, ...],
    tmp_path: Path,
) -> None:
    repository.publish(EXTRA_PATH, b"extra")
    (tmp_path / "file").write_text("")
    environ["SQB_CACHE_DIR"] = str(tmp_path / "file" / "below")
    with pytest.raises(SqbError, match="could not be kept") as caught:
        resolve_jars([EXTRA], local_defaults, environ=environ, progress=None)
    assert "SQB_CACHE_DIR" in (caught.value.help or "")
