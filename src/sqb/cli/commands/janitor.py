"""``sqb janitor``: show what nothing in the lake needs any more, ask, remove it."""

from __future__ import annotations

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
    with call.project() as project:
        call.before_heavy_work()
        found = project.upkeep.survey()
        if not call.out.json:
            _show(found, call.out)
        if dry_run or not found.findings:
            _tell(call, found if dry_run else None, found, dry_run=dry_run)
            return 0
        if not yes and not click.confirm("Remove all this?"):
            call.out.important("Nothing removed")
            return 0
        _tell(call, project.upkeep.remove(found), found, dry_run=False)
    return 0


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
