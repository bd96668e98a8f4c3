"""``sqb janitor``: show what nothing in the lake needs any more, ask, remove it."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from sqb.cli.call import SELECTION, Call
from sqb.cli.call import command as sqb_command
from sqb.cli.render.words import count, size
from sqb.errors import SqbError

if TYPE_CHECKING:
    from sqb.cli.output import Output
    from sqb.upkeep.janitor import Finding, Survey
    from sqb.upkeep.upkeep import Upkeep

#: kind -> (its heading, one of it).
_KINDS: dict[str, tuple[str, str]] = {
    "relation": ("Relations that no model or seed makes", "relation"),
    "snapshots": ("Old snapshots", "snapshot"),
    "metadata": ("Old metadata files", "file"),
    "staged": ("Staged tables of builds that died", "table"),
    "state_rows": ("Old rows of state tables", "row"),
    "orphans": ("Files that nothing names", "file"),
}
_SHOWN = 8


def janitor(call: Call, *, yes: bool, dry_run: bool) -> int:
    """Survey, ask, remove."""
    call.no_selection("janitor")
    if not (yes or dry_run) and (call.out.json or not sys.stdin.isatty()):
        raise SqbError(
            "C010",
            "`sqb janitor` asks before it removes, and there is no terminal to ask on",
            help="add --yes, or look first with --dry-run",
        )
    with contextlib.ExitStack() as stack:
        keepers = _keepers(call, stack)
        call.before_heavy_work()
        surveys = [keeper.survey() for keeper in keepers]
        found = _joined(surveys)
        if not call.out.json:
            _show(found, call.out)
        if dry_run or not found.findings:
            _tell(call, found if dry_run else None, found, dry_run=dry_run)
            return 0
        if not yes and not click.confirm("Remove all this?"):
            call.out.important("Nothing removed")
            return 0
        pairs = zip(keepers, surveys, strict=True)
        _tell(call, _joined([k.remove(seen) for k, seen in pairs]), found, dry_run=False)
    return 0


def _keepers(call: Call, stack: contextlib.ExitStack) -> list[Upkeep]:
    """The upkeep of the project, and of the state of a dbt project that is here too."""
    keepers: list[Upkeep] = []
    missing: SqbError | None = None
    try:
        keepers.append(stack.enter_context(call.project()).upkeep)
    except SqbError as error:
        if error.code != "C001":
            raise
        missing = error
    theirs, is_dbt = _of_dbt(call, stack)
    if theirs is not None:
        keepers.append(theirs)
    elif is_dbt and missing is not None:
        raise SqbError(
            "C007",
            "the janitor looks after SQL catalogs, and this project's state is elsewhere",
            help="prune _sqlbuild_fingerprints and _sqlbuild_source_freshness on the server: the "
            "latest row of each node counts",
        )
    elif missing is not None:
        raise missing
    return keepers


def _of_dbt(call: Call, stack: contextlib.ExitStack) -> tuple[Upkeep | None, bool]:
    """The upkeep of a dbt project's state, and whether there is such a project."""
    from pathlib import Path

    from sqb.border import state_upkeep
    from sqb.dbt.reader import DbtReader
    from sqb.dbt.request import Request

    if call.config is not None and not call.config.dbt:
        return None, False
    # a target of the project is not one of a profile
    request = Request(target=call.target if call.config is None else None)
    try:
        reader = DbtReader(request, start=Path(call.directory).absolute(), environ=os.environ)
    except SqbError as error:
        if error.code == "B001" and call.config is None:
            return None, False
        raise
    return stack.enter_context(state_upkeep(reader)), True


def _joined(surveys: list[Survey]) -> Survey:
    from sqb.upkeep.janitor import Survey

    seen = {(f.kind, f.relation): f for survey in surveys for f in survey.findings}
    kept = {k.place: k for survey in surveys for k in survey.kept}
    return Survey(tuple(seen.values()), tuple(kept.values()))


def _show(found: Survey, out: Output) -> None:
    """What can go, kind by kind."""
    for kind, (heading, noun) in _KINDS.items():
        mine = [f for f in found.findings if f.kind == kind]
        if not mine:
            continue
        out.line(f"{heading}: {count(sum(f.count for f in mine), noun)}{_space(mine)}")
        largest = sorted(mine, key=lambda f: (-f.bytes, f.relation))
        shown = largest if out.verbose else largest[:_SHOWN]
        width = max(len(f.relation) for f in shown)
        for finding in shown:
            number = "" if kind in ("relation", "staged") else f"{count(finding.count, noun)}, "
            text = f"  {finding.relation:<{width}}  {number}{size(finding.bytes)}"
            out.line(text if finding.bytes else text.rpartition(", ")[0] or text, dim=True)
        if len(mine) > len(shown):
            out.line(f"  … {len(mine) - len(shown):,} more", dim=True)
    for kept in found.kept:
        out.line(f"left alone: {kept.place}: {kept.why}", dim=True)


def _space(findings: list[Finding]) -> str:
    files, total = sum(f.files for f in findings), sum(f.bytes for f in findings)
    return f" ({count(files, 'file')}, {size(total)})" if files else ""


def _tell(call: Call, removed: Survey | None, found: Survey, *, dry_run: bool) -> None:
    """How it ended."""
    findings = removed.findings if removed is not None else ()
    files, total = sum(f.files for f in findings), sum(f.bytes for f in findings)
    if call.out.json:
        call.out.document(
            {
                "schema_version": 1,
                "dry_run": dry_run,
                "removed": [_entry(f) for f in findings],
                "kept": [
                    {"relation": k.place, "why": k.why}
                    for k in {k.place: k for s in (found, removed) if s for k in s.kept}.values()
                ],
                "summary": {"files": files, "bytes": total},
            }
        )
    elif not found.findings:
        call.out.important("Nothing to remove")
    elif dry_run:
        call.out.important(f"Would remove {count(files, 'file')}, {size(total)}")
    else:
        call.out.important(f"Removed {count(files, 'file')}, {size(total)}")


def _entry(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "relation": finding.relation,
        "count": finding.count,
        "files": finding.files,
        "bytes": finding.bytes,
    }


_function = click.option("--yes", "-y", envvar="SQB_YES", is_flag=True, help="Don't ask.")(
    click.option(
        "--dry-run", envvar="SQB_DRY_RUN", is_flag=True, help="Show what would go, remove nothing."
    )(janitor)
)

command = sqb_command(
    "janitor",
    help="Remove from the lake what nothing needs any more: old snapshots and metadata, leftovers "
    "of builds that died, relations of models that are gone.",
    example="""
sqb janitor --dry-run
sqb janitor --yes --json
""",
    hides=SELECTION,
)(_function)
