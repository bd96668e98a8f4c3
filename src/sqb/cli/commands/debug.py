"""``sqb debug``: is everything there that a build needs? Starts no Spark, fetches nothing."""

from __future__ import annotations

import os
import platform
import sys
from collections import Counter
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqb
from sqb.cli.call import SELECTION, Call
from sqb.cli.call import command as sqb_command
from sqb.cli.render.words import count
from sqb.errors import SqbError
from sqb.project.secrets import mask
from sqb.project.stores import is_store

if TYPE_CHECKING:
    from sqb.api import Project
    from sqb.project.config import Config

_PACKAGES = ("pyspark", "pyiceberg", "pyarrow", "sqlglot", "msgspec", "click")


def debug(call: Call) -> int:
    """Check and print."""
    call.no_selection("debug")
    checks: list[dict[str, Any]] = []

    def check(name: str, look: Callable[[], tuple[bool, str]]) -> None:
        try:
            ok, detail = look()
        except SqbError as error:
            ok, detail = False, error.message + (f"; {error.help}" if error.help else "")
        checks.append({"name": name, "ok": ok, "detail": mask(detail, call.config)})

    check("sqb", lambda: (True, sqb.__version__))
    check("python", _python)
    for package in _PACKAGES:
        check(package, lambda package=package: _package(package))  # type: ignore[misc]
    check("java", _java)
    project = _open(call, checks)
    config = project.config if project else None
    check("jars", lambda: _jars(config))
    if project is not None:
        check("target", lambda: (True, _target(project)))
        check("compile", lambda: _compile(project))
        check("catalog", lambda: _catalog(project))
        if is_store(project.catalog.warehouse):
            check("warehouse", lambda: _warehouse(project))
        check("publish", lambda: _publish(project))
        check("relations", lambda: _relations(project))
    good = all(item["ok"] for item in checks)
    if call.out.json:
        call.out.document({"schema_version": 1, "ok": good, "checks": checks})
    else:
        _show(call, checks, good=good)
    return 0 if good else 1


def _show(call: Call, checks: list[dict[str, Any]], *, good: bool) -> None:
    out = call.out
    width = max(len(item["name"]) for item in checks)
    for item in checks:
        mark = out.style("ok  ", fg="green") if item["ok"] else out.style("FAIL", fg="red")
        text = f"{item['name']:<{width}}  {mark}  {item['detail']}"
        if item["ok"]:
            out.line(text)
        else:
            out.important(text)
    out.line()
    out.important("Everything is in place" if good else "Something is missing, see above")


def _python() -> tuple[bool, str]:
    supported = (3, 10) <= sys.version_info < (3, 14)
    note = "" if supported else "; sqb needs Python 3.10 to 3.13"
    return supported, f"{platform.python_version()} at {sys.executable}{note}"


def _package(name: str) -> tuple[bool, str]:
    try:
        return True, version(name)
    except PackageNotFoundError:
        return False, "not installed"


def _java() -> tuple[bool, str]:
    from sqb.spark.java import find_java

    java = find_java(os.environ)
    return True, f"{java.version} at {java.home} ({java.source})"


def _jars(config: Config | None) -> tuple[bool, str]:
    """Are the jars there? Missing ones of a repository are fetched by the next build."""
    from sqb.spark.jars import DEFAULTS, cache_dir, extras_of, parse_coordinate

    folder = cache_dir(os.environ) / "jars"
    given = [Path(jar) for jar in config.spark.jars] if config else []
    lost = [str(jar) for jar in given if not jar.is_file()]
    if lost:
        return False, f"missing: {', '.join(lost)}"
    extra = config.spark.packages if config else ()
    lake = extras_of(config.catalog.uri, config.catalog.warehouse) if config else ()
    wanted = [parse_coordinate(text) for text in (*DEFAULTS, *lake, *extra)]
    names = {_role(jar.name) for jar in given}
    missing = [
        item.file_name
        for item in wanted
        if _role(item.file_name) not in names
        and not (folder / item.group / item.file_name).is_file()
    ]
    if missing:
        return True, f"the first build fetches {', '.join(missing)} into {folder}"
    return True, f"{len(wanted) + len(given)} present"


def _role(file_name: str) -> str:
    """What a jar is, whatever its version."""
    from sqb.spark.jars import DEFAULT_PREFIXES

    return next((p for p in DEFAULT_PREFIXES if file_name.startswith(p)), file_name)


def _open(call: Call, checks: list[dict[str, Any]]) -> Project | None:
    try:
        project = call.project()
    except SqbError as error:
        detail = mask(error.message + (f"; {error.help}" if error.help else ""), None)
        checks.append({"name": "project", "ok": False, "detail": detail})
        return None
    detail = f"{project.config.name} in {project.root}"
    checks.append({"name": "project", "ok": True, "detail": detail})
    return project


def _target(project: Project) -> str:
    target = project.config.target
    return f"{target.name}, schema {target.schema}"


def _compile(project: Project) -> tuple[bool, str]:
    compiled = project.compiled
    parts = (("model", compiled.models), ("seed", compiled.seeds), ("source", compiled.sources))
    return True, ", ".join(count(len(found), noun) for noun, found in parts)


def _catalog(project: Project) -> tuple[bool, str]:
    catalog, lake = project.config.catalog, project.catalog
    lake.namespaces()
    path = lake.path
    there = "; the first build creates it" if path is not None and not path.exists() else ""
    return True, f"{catalog.name} ({catalog.type}) {lake.place}{there}"


def _publish(project: Project) -> tuple[bool, str]:
    mode = project.catalog.mode
    return True, f"by {mode}" if mode else "not known before the first rebuild of a table"


def _warehouse(project: Project) -> tuple[bool, str]:
    """Does the object store answer?"""
    from sqb.lake.stores import reach

    warehouse = project.catalog.warehouse
    reach(warehouse)
    return True, warehouse


def _relations(project: Project) -> tuple[bool, str]:
    found = Counter(namespace for namespace, _ in project.observe().heads)
    text = ", ".join(f"{number} in {namespace}" for namespace, number in sorted(found.items()))
    return True, text or "none yet"


command = sqb_command(
    "debug",
    help="Check Java, Spark, the jars, the project and the catalog.",
    example="""
sqb debug
sqb debug --json
""",
    hides=(*SELECTION, "verbose"),
)(debug)
