"""Where a project's warm Spark is found, and whether it is one that this command may use.

On the way of every command, so nothing but small parts of the standard library is imported.
"""

from __future__ import annotations

import os
import sys

import sqb

TYPE_CHECKING = False
if TYPE_CHECKING:
    # typing itself, and what talks to a warm Spark, is loaded only where there is one
    import socket
    from typing import Any

PROJECT_FILE = "sqlbuild_project.toml"
FOLDER = (".sqb", "spark")
STATE = "warm.json"
LOCK = "lock"
_SCHEMA = 1


def project_root(directory: str) -> str | None:
    """The folder of the project that ``directory`` is in."""
    here = os.path.abspath(directory)  # noqa: PTH100 - pathlib is a heavy import here
    while True:
        if os.path.isfile(os.path.join(here, PROJECT_FILE)):  # noqa: PTH113, PTH118
            return os.path.realpath(here)
        above = os.path.dirname(here)  # noqa: PTH120
        if above == here:
            return None
        here = above


def inside(root: str, *names: str) -> str:
    """A path in the project's folder of the warm Spark."""
    return os.path.join(root, *FOLDER, *names)  # noqa: PTH118


def read_state(root: str) -> dict[str, Any] | None:
    """What the warm Spark of a project wrote about itself, None if there is none."""
    if not os.path.exists(inside(root, STATE)):  # noqa: PTH110
        return None
    import json

    try:
        with open(inside(root, STATE), encoding="utf-8") as file:  # noqa: PTH123
            found = json.load(file)
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and found.get("schema") == _SCHEMA else None


def identity() -> dict[str, Any]:
    """What a command and a warm Spark must have in common: schema, machine, Python, modules."""
    return {
        "schema": _SCHEMA,
        "host": _host(),
        "user": os.getuid(),
        "python": sys.executable,
        "path": _path(os.environ.get("PYTHONPATH", "")),
        "package": _fingerprint(),
    }


def misfit(state: dict[str, Any]) -> str | None:
    """Why this command can't use the warm Spark that wrote ``state``; None if it can."""
    mine = identity()
    words = {
        "host": "it runs on another machine or in another container",
        "user": "it belongs to another user",
        "python": "it runs on another Python",
        "path": "it was started with another PYTHONPATH",
        "package": "sqb or the installed packages changed since it was started",
    }
    return next((words[key] for key in words if state.get(key) != mine[key]), None)


def call(state: dict[str, Any], seconds: float) -> socket.socket | None:
    """A connection to the warm Spark, None if nobody answers."""
    import socket

    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(seconds)
    try:
        connection.connect(state["socket"])
    except (OSError, KeyError):
        connection.close()
        return None
    return connection


def _path(text: str) -> str:
    """PYTHONPATH as it reads from any folder."""
    folders = [os.path.abspath(path) for path in text.split(os.pathsep) if path]  # noqa: PTH100
    return os.pathsep.join(folders)


def _host() -> str:
    """Host name and process-id namespace: a container may share folder and name, not processes."""
    import socket

    try:
        return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')}"  # noqa: PTH115
    except OSError:
        return socket.gethostname()


def _fingerprint() -> str:
    """sqb's own files, and when the folders of installed packages last changed."""
    import hashlib

    found: list[str] = [sqb.__version__]
    folders = [os.path.dirname(os.path.abspath(sqb.__file__))]  # noqa: PTH100, PTH120
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir():
                    if entry.name not in ("__pycache__", "templates"):
                        folders.append(entry.path)
                elif entry.name.endswith(".py"):
                    status = entry.stat()
                    found.append(f"{entry.path} {status.st_mtime_ns} {status.st_size}")
    packages = {path for path in sys.path if path.endswith("site-packages")}
    there = [path for path in sorted(packages) if os.path.isdir(path)]  # noqa: PTH112
    found += [f"{path} {os.stat(path).st_mtime_ns}" for path in there]  # noqa: PTH116
    return hashlib.blake2b("\n".join(found).encode(), digest_size=16).hexdigest()
