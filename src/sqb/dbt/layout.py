"""What ``dbt_project.yml`` says, of a project and of its packages: folders, profile, variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from sqb.dbt.render import Renderer, in_line
from sqb.errors import SqbError
from sqb.project.layout import DBT_FILE

#: Variables in a file of their own, which dbt reads from 1.12 on.
VARS_FILE = "vars.yml"

#: Keys that name folders which dbt reads, with dbt's defaults.
_FOLDERS = {
    "model-paths": ["models"],
    "seed-paths": ["seeds"],
    "test-paths": ["tests"],
    "analysis-paths": ["analyses"],
    "snapshot-paths": ["snapshots"],
    "macro-paths": ["macros"],
    "function-paths": ["functions"],
    "docs-paths": [],
}


class ProjectFile(msgspec.Struct, frozen=True):
    """One package, the root project among them. Folders are relative to ``root``."""

    root: str
    name: str
    profile: str | None
    folders: tuple[str, ...]
    vars: dict[str, Any]
    target_path: str
    log_path: str
    install_path: str


def read_project_file(
    root: Path, *, environ: Mapping[str, str], variables: Mapping[str, object]
) -> ProjectFile:
    """The package whose folder is ``root``."""
    path = root / DBT_FILE
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not valid UTF-8"
        raise SqbError("B007", f"{DBT_FILE} can't be read: {reason}", file=str(path)) from None
    values = read_yaml(text, str(path), "B007")
    apart = _vars_apart(root)
    renderer = Renderer(str(path), environ=environ, variables={**apart, **variables})

    def rendered(key: str, default: Any) -> Any:
        value = renderer.render(values.get(key), key, text)
        return default if value is None else value

    name = rendered("name", None)
    if not isinstance(name, str):
        raise SqbError("B007", f"{DBT_FILE} has no `name`", file=str(path), help="name the project")
    folders: dict[str, None] = {}
    for key, default in _FOLDERS.items():
        listed = rendered(key, default)
        for folder in listed if isinstance(listed, list) else [listed]:
            folders[os.path.normpath(str(folder))] = None
    profile = rendered("profile", None)
    within = values.get("vars")
    return ProjectFile(
        root=str(root),
        name=name,
        profile=None if profile is None else str(profile),
        folders=tuple(folders),
        # dbt renders no Jinja in these
        vars={**(within if isinstance(within, dict) else {}), **apart},
        target_path=str(rendered("target-path", "target")),
        log_path=str(rendered("log-path", "logs")),
        install_path=str(rendered("packages-install-path", "dbt_packages")),
    )


def _vars_apart(root: Path) -> dict[str, Any]:
    path = root / VARS_FILE
    if not path.is_file():
        return {}
    found = read_yaml(path.read_text(encoding="utf-8-sig"), str(path), "B007").get("vars")
    return found if isinstance(found, dict) else {}


def read_packages(
    project: ProjectFile, *, environ: Mapping[str, str], variables: Mapping[str, object]
) -> list[ProjectFile]:
    """The packages that are installed, in the order of their folders."""
    return [
        read_project_file(Path(folder), environ=environ, variables=variables)
        for folder in package_folders(install_folder(project))
    ]


def install_folder(project: ProjectFile) -> str:
    """The folder that holds the packages."""
    return os.path.normpath(Path(project.root, project.install_path))


def package_folders(install: str) -> list[str]:
    """The folders of installed packages."""
    try:
        with os.scandir(install) as listing:
            names = sorted(entry.name for entry in listing)
    except (FileNotFoundError, NotADirectoryError):
        return []
    folders = [f"{install}/{name}" for name in names]
    return [folder for folder in folders if Path(folder, DBT_FILE).is_file()]


def visible_vars(
    project: ProjectFile, packages: list[ProjectFile], given: Mapping[str, object]
) -> dict[str, dict[str, str]]:
    """The variables that the nodes of each package see, as canonical JSON.

    The order is dbt's: those given on the command line, then the root project's for the package,
    then the root project's for all, then the package's own.
    """
    out: dict[str, dict[str, str]] = {}
    for package in [project, *packages]:
        seen: dict[str, object] = {}
        for values in (package.vars, project.vars):
            seen |= values
            own = values.get(package.name)
            seen |= own if isinstance(own, dict) else {}
        seen |= given
        out[package.name] = {name: canonical(value) for name, value in seen.items()}
    return out


def canonical(value: object) -> str:
    """A value of YAML as one text; dates as dbt would print them."""
    return msgspec.json.encode(value, order="sorted", enc_hook=str).decode()


def read_yaml(text: str, file: str, code: str, *, private: bool = False) -> dict[str, Any]:
    """The mapping that a file of dbt holds; lines of a ``private`` one are not shown."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        values = yaml.load(text, loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else None
        problem = getattr(error, "problem", None) or "bad form"
        raise SqbError(
            code,
            f"{Path(file).name} is not valid YAML: {problem}{in_line(line) if private else ''}",
            file=file,
            line=None if private else line,
            help="check the indentation, and quote texts that hold `:`, `{` or `#`",
        ) from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise SqbError(code, f"{Path(file).name} must hold a mapping", file=file, line=1)
    return values
