"""Where a dbt project is, which dbt runs it, and of which versions that is.

dbt is never imported and not run here: its versions are read from the folders that pip leaves
beside it, so that knowing them costs no second process.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from sqb.errors import SqbError
from sqb.hashing import digest
from sqb.project.layout import DBT_FILE

EXECUTABLE_VARIABLE = "DBT_EXECUTABLE"
PROJECT_VARIABLE = "DBT_PROJECT_DIR"

_EXEC = re.compile(rb"^'''exec' (?:\"([^\"]+)\"|(\S+))")
_PIP = re.compile(r"^(dbt_[a-z0-9_]+)-([^-]+)\.dist-info$")


def find_project(start: Path, given: str | None, environ: Mapping[str, str]) -> Path:
    """The folder of ``dbt_project.yml``: the one given, else the nearest at or above ``start``."""
    named = given or environ.get(PROJECT_VARIABLE)
    if named:
        folder = (start / named).resolve()
        if not (folder / DBT_FILE).is_file():
            raise SqbError(
                "B001",
                f"there is no {DBT_FILE} in {folder}",
                help="name the folder that holds it with --project-dir",
            )
        return folder
    folder = start.resolve()
    for candidate in (folder, *folder.parents):
        if (candidate / DBT_FILE).is_file():
            return candidate
    raise SqbError(
        "B001",
        f"there is no {DBT_FILE} in {folder} or a folder above it",
        help="go into a dbt project, or name one with --project-dir",
    )


def find_dbt(environ: Mapping[str, str], python: str | None = None) -> Path:
    """The dbt to run: ``DBT_EXECUTABLE``, the one beside this Python, else the one on ``PATH``."""
    path = environ.get("PATH", os.defpath)
    named = environ.get(EXECUTABLE_VARIABLE)
    if named:
        written = Path(named).expanduser()
        found = shutil.which(str(written), path=path)
        if found is None:
            raise SqbError(
                "B002",
                f"{EXECUTABLE_VARIABLE} names `{named}`, which can't be run",
                help="set it to the path of a dbt executable, or unset it",
            )
        return Path(found).absolute()
    beside = Path(python or sys.executable).absolute().parent / "dbt"
    if os.access(beside, os.X_OK) and beside.is_file():
        return beside
    found = shutil.which("dbt", path=path)
    if found is None:
        raise SqbError(
            "B002",
            "dbt was not found beside this Python, nor on the PATH",
            help="pip install 'dbt-core' 'dbt-spark[session]', or set DBT_EXECUTABLE to a dbt",
        )
    return Path(found).absolute()


def versions_of(executable: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The versions of dbt and its adapters, by package.

    Where they can't be read (a wrapper, a binary), the executable itself stands for them.
    """
    interpreter = interpreter_of(executable, environ)
    found: dict[str, str] = {}
    for folder in _package_folders(interpreter) if interpreter is not None else ():
        try:
            with os.scandir(folder) as entries:
                names = [entry.name for entry in entries]
        except OSError:
            continue
        for name in names:
            package = _PIP.match(name)
            if package is not None:
                found.setdefault(package[1].replace("_", "-"), package[2])
    if "dbt-core" in found:
        return dict(sorted(found.items()))
    real = executable.resolve()
    try:
        stat = real.stat()
    except OSError:
        return {"dbt": digest(str(real))}
    return {"dbt": digest(str(real), str(stat.st_mtime_ns), str(stat.st_size))}


def interpreter_of(executable: Path, environ: Mapping[str, str]) -> Path | None:
    """The Python that a script is run by, from its first lines; None if it is no Python script."""
    try:
        with executable.open("rb") as file:
            head = file.read(2048)
    except OSError:
        return None
    lines = head.split(b"\n")
    if not lines[0].startswith(b"#!"):
        return None
    words = lines[0][2:].decode("utf-8", "replace").split()
    if not words:
        return None
    name = Path(words[0]).name
    if name == "env":
        rest = [word for word in words[1:] if not word.startswith("-")]
        found = shutil.which(rest[0], path=environ.get("PATH", os.defpath)) if rest else None
        interpreter = Path(found) if found else None
    elif name == "sh":
        # pip's form for paths that are too long or hold spaces
        match = _EXEC.match(lines[1]) if len(lines) > 1 else None
        text = (match[1] or match[2]) if match else None
        interpreter = Path(text.decode("utf-8", "replace")) if text else None
    else:
        interpreter = Path(words[0])
    if interpreter is None or not interpreter.name.startswith(("python", "pypy")):
        return None
    return interpreter


def _package_folders(interpreter: Path) -> list[Path]:
    # The link is not followed: a virtual environment is where the link stands.
    prefix = interpreter.parent.parent
    patterns = ["lib/python3*/site-packages", "lib64/python3*/site-packages"]
    if not (prefix / "pyvenv.cfg").exists():
        patterns += ["lib/python3/dist-packages", "local/lib/python3*/dist-packages"]
    return [folder for pattern in patterns for folder in sorted(prefix.glob(pattern))]
