"""``sqb playground``: a project of a dozen models with source tables, to try everything on."""

from __future__ import annotations

import runpy
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from sqb.cli.call import PROJECT, Call
from sqb.cli.call import command as sqb_command
from sqb.cli.scaffold import write_project
from sqb.errors import SqbError

_TEMPLATES = ("waffle_shop", "virtual", "dbt", "python")
#: template -> the release that brings it.
_LATER = {"virtual": "0.5", "python": "0.5"}
#: Plays the other teams: it makes the source tables, and later adds rows to them.
_TILL = "raw/next_day.py"
_DAYS = 14
_WIDEST = 36


def playground(call: Call, *, name: str, template: str) -> None:
    """Write the project and let its till run for two weeks."""
    call.no_selection("playground")
    if template in _LATER:
        raise SqbError(
            "C011",
            f"the template `{template}` arrives in release {_LATER[template]}",
            help="leave --template out for the waffle shop",
        )
    root = Path(name).absolute()
    _refuse_lake(root, name)
    written = write_project(template, root, name, "playground")
    if template == "dbt":
        written.append(_write_profile(root))
    call.before_heavy_work()
    told: str = runpy.run_path(str(root / _TILL))["deliver"](_DAYS)
    if call.out.json:
        document: dict[str, Any] = {"schema_version": 1, "directory": str(root)}
        document |= {"template": template, "written": written}
        call.out.document(document)
        return
    out = call.out
    out.important(f"{out.style('Created', fg='green')} the waffle shop in {name}")
    models = sum(name.startswith("models/") and name.endswith(".sql") for name in written)
    seeds = sum(name.endswith(".csv") for name in written)
    out.line(f"  {models} models, {seeds} seeds")
    out.line(f"  {told}")
    out.line()
    out.line("Now type:")
    steps = [] if root == Path.cwd() else [(f"cd {shlex.quote(name)}", "")]
    sqb = "sqb dbt" if template == "dbt" else "sqb"
    steps += [
        (f"{sqb} build", "everything, the first time"),
        (f"{sqb} build", "nothing: all is current"),
        (f"{_python()} {_TILL}", "another day of orders arrives"),
        (f"{sqb} plan", "what that touches, and what it does not"),
    ]
    # a long path of an interpreter does not push the others out of the page
    width = max(len(step) for step, _ in steps if len(step) <= _WIDEST)
    for step, why in steps:
        out.line(f"  {step:<{width}}  {out.style(why, dim=True)}".rstrip() if why else f"  {step}")


def _write_profile(root: Path) -> str:
    """A profile with a Spark in dbt's own process, and the lake of the folder as its catalog."""
    from sqb.spark.elsewhere import as_dbt
    from sqb.spark.settings import SparkSettings

    lake = root / "lake"
    settings = SparkSettings(
        "lake",
        f"sqlite:///{lake / 'catalog.db'}",
        str(lake),
        conf={
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "4",
            "spark.sql.catalogImplementation": "in-memory",
        },
    )
    file = root / "profiles.yml"
    file.write_text(as_dbt(settings, "dev", "dev"), encoding="utf-8")
    return file.name


def _refuse_lake(root: Path, name: str) -> None:
    """The till goes on where it stopped; a new project starts with its first day."""
    from sqb.lake.catalog import SqlCatalog

    lake = root / "lake"
    if not (lake / "catalog.db").exists():
        return
    heads = SqlCatalog("lake", f"sqlite:///{lake / 'catalog.db'}", str(lake)).heads()
    if any(namespace == "till" for namespace, _ in heads):
        raise SqbError(
            "C009",
            f"{name}/lake already holds tables of a waffle shop",
            help="nothing was written; name another folder: sqb playground DIR",
        )


def _python() -> str:
    """How to call a Python that has pyiceberg; where sqb has one of its own, that one."""
    look = "import importlib.util as u, sys; sys.exit(u.find_spec('pyiceberg') is None)"
    found = shutil.which("python")
    if found and subprocess.run([found, "-c", look], check=False).returncode == 0:
        return "python"
    return shlex.quote(sys.executable)


command = sqb_command(
    "playground",
    help="Start a project to play with: a waffle shop with a dozen models and its own data.",
    example="""
sqb playground waffles
cd waffles && sqb build
""",
    hides=(*PROJECT, "verbose"),
)(
    click.argument("name")(
        click.option(
            "--template",
            envvar="SQB_TEMPLATE",
            type=click.Choice(_TEMPLATES),
            default=_TEMPLATES[0],
            show_default=True,
            help="Which project; virtual and python arrive in release 0.5.",
        )(playground)
    )
)
