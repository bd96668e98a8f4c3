"""``sqb dbt``: an existing dbt project, planned and built without touching a file of it."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from sqb.cli.call import SELECTION, Call, SqbCommand
from sqb.cli.call import command as sqb_command
from sqb.cli.render.waiting import Waiting
from sqb.errors import SqbError

if TYPE_CHECKING:
    from sqb.border import Border
    from sqb.dbt.plan import DbtPlan
    from sqb.dbt.project import DbtProject, DbtResult
    from sqb.execution.events import BuildResult
    from sqb.planning.plan import Plan

_SELECT = frozenset({"-s", "--select", "-m", "--models", "--model"})
_SHORT = {"-t": "--target", "-f": "--full-refresh"}


def as_written_for_dbt(words: Sequence[str]) -> list[str]:
    """Arguments as dbt takes them: one option may have several values, and other short names.

    >>> as_written_for_dbt(["-m", "a", "b", "--exclude", "c", "-t", "prod", "--", "-x", "y"])
    ['--select', 'a', '--select', 'b', '--exclude', 'c', '--target', 'prod', '--', '-x', 'y']
    """
    out: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            return [*out, word, *words[at:]]
        name, equals, value = word.partition("=")
        option = "--select" if name in _SELECT else name
        if option not in {"--select", "--exclude"}:
            out.append(_SHORT.get(word, word))
            continue
        values = [value] if equals else []
        while at < len(words) and not words[at].startswith("-"):
            values.append(words[at])
            at += 1
        out += [part for each in values for part in (option, each)] or [option]
    return out


class _DbtCommand(SqbCommand):
    """A command that tells where dbt's own options go."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            if error.possibilities:
                raise
            raise SqbError(
                "C008",
                f"there is no option `{error.option_name}`",
                help=f"options that only dbt knows come after `--`: {ctx.command_path} -- "
                f"{error.option_name}",
            ) from None


class _SelectingCommand(_DbtCommand):
    """A command that selects as dbt does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, as_written_for_dbt(args))


def _open(call: Call, command: str, options: dict[str, Any]) -> DbtProject:
    from sqb.dbt.project import DbtProject
    from sqb.dbt.request import Request

    request = Request(
        command=command,
        select=tuple(call.select),
        exclude=tuple(call.exclude),
        selector=options.get("selector"),
        vars=call.vars,
        full_refresh=bool(options.get("full_refresh")),
        threads=options.get("threads"),
        target=call.target,
        profile=options.get("profile"),
        project_dir=call.directory if call.directory != "." else None,
        profiles_dir=options.get("profiles_dir"),
        target_path=options.get("target_path"),
        defer=options.get("defer"),
        state=options.get("state"),
        rest=tuple(options.get("rest") or ()),
    )
    return DbtProject(request, listener=Waiting(call).hear)


def plan(call: Call, *, fail_on: tuple[str, ...], **options: Any) -> int:
    """Plan and show it."""
    with _open(call, "build", options) as project:
        found = project.plan()
        border = _border(project)
        below = border.plan(found, Waiting(call).hear) if border is not None else None
        if border is not None:
            border.close()
    if call.out.json:
        from sqb.cli.render.dbt_documents import dbt_plan_document

        call.out.document(dbt_plan_document(found, below))
    else:
        _show(call, found)
        if below is not None:
            from sqb.cli.render.plan_text import show_plan

            call.out.line(f"sqb ({len(below.nodes)} models below)", bold=True)
            show_plan(below, call.out, call.seconds())
    nodes = (*found.nodes, *found.tests, *(below.nodes if below is not None else ()))
    failing = {
        "run": any(node.action == "run" for node in nodes),
        "blocked": any(node.action == "block" for node in nodes),
    }
    return 1 if any(failing[what] for what in fail_on) else 0


def _border(project: DbtProject) -> Border | None:
    """The sqb project around the dbt project, if there is one."""
    if project.reader.found.config is None:
        return None
    from sqb.border import Border

    border = Border(project)
    return border if border.models else None


def build(call: Call, **options: Any) -> int:
    """Build and tell about it."""
    return _run(call, "build", options)


def run(call: Call, **options: Any) -> int:
    """Run models and tell about it."""
    return _run(call, "run", options)


def _run(call: Call, command: str, options: dict[str, Any]) -> int:
    out = call.out

    def on_plan(found: DbtPlan) -> None:
        _show(call, found)
        if found.work:
            call.before_heavy_work()

    with _open(call, command, options) as project:
        result = project.build(output=out.stream, on_plan=on_plan, stopping=_stopping)
        if not out.json and result.ended is not None:
            from sqb.cli.render.build_text import last_line

            out.line()
            out.important(last_line(result.build, out, call.seconds()))
        if result.ended is not None:
            _tidy(call, project, str(result.build.run_id))
        # `dbt run` is about models of dbt alone
        border = _border(project) if command == "build" else None
        below = _build_below(call, border, result) if border is not None else None
    if out.json:
        from sqb.cli.render.dbt_documents import dbt_build_document

        out.document(dbt_build_document(result, below, call.seconds()))
    return _code(result, below)


def _tidy(call: Call, project: DbtProject, run_id: str) -> None:
    """Keep the state tables small, which grow by a file with every build."""
    from sqb.border import state_upkeep

    with state_upkeep(project.reader) as upkeep:
        for note in upkeep.tidy([], run_id, None, 0.0) if upkeep is not None else ():
            call.out.line(note, dim=True)


def _build_below(call: Call, border: Border, result: DbtResult) -> BuildResult | None:
    """Build the sqb models that read what dbt built."""
    from contextlib import closing

    from sqb.cli.render.build_text import show_end
    from sqb.cli.render.plan_text import counts, last_line, show_warnings
    from sqb.cli.render.progress import Progress

    out = call.out
    with closing(border):
        with closing(Progress(out, call.before_heavy_work)) as progress:

            def on_plan(plan: Plan) -> None:
                progress.plan(plan)
                show_warnings(plan.warnings, out)
                if plan.work:
                    out.line(f"sqb, for {plan.target}: {counts(plan, out)}")

            below = border.build(result, progress.hear, on_plan)
        if below is None or out.json:
            return below
        project = border.project()
        if below.plan.work:
            show_end(below, out, seconds=call.seconds(), root=project.root, config=project.config)
        else:
            out.important(f"sqb: {last_line(below.plan, out, call.seconds())}")
        return below


def _code(result: DbtResult, below: BuildResult | None) -> int:
    """dbt's own exit code, if it has a complaint; else 1 for what failed or was blocked here."""
    if result.build.interrupted or (below is not None and below.interrupted):
        return 130
    if result.ended is not None and result.ended.code:
        return result.ended.code
    return 1 if result.build.failed or (below is not None and below.failed) else 0


def explain(call: Call, *, node: str, **options: Any) -> None:
    """Explain one node."""
    call.no_selection("dbt explain")
    with _open(call, "build", options) as project:
        found = project.explain(node)
    if call.out.json:
        from sqb.cli.render.dbt_documents import dbt_explanation_document

        call.out.document(dbt_explanation_document(found))
        return
    from sqb.cli.render.dbt_text import show_dbt_explanation

    show_dbt_explanation(found, call.out)


def _show(call: Call, found: DbtPlan) -> None:
    from sqb.cli.render.dbt_text import show_dbt_plan

    if not call.out.json:
        show_dbt_plan(found, call.out, call.seconds())


def _stopping(left: int) -> None:
    more = f"; {left} more times to end it at once" if left else ""
    os.write(sys.stderr.fileno(), f"\nstopping dbt{more}\n".encode())


def _all(
    options: Sequence[Callable[[Any], Any]], function: Callable[..., Any]
) -> Callable[..., Any]:
    for option in reversed(options):
        function = option(function)
    return function


_READING = (
    click.option("--profile", metavar="NAME", help="The profile, if not the project's own."),
    click.option("--profiles-dir", metavar="DIR", help="The folder of profiles.yml."),
    click.option("--target-path", metavar="DIR", help="Where dbt writes its artifacts."),
)
_SELECTING = (
    click.option("--selector", metavar="NAME", help="A selector of selectors.yml."),
    click.option("--full-refresh", is_flag=True, help="Rebuild incremental models and seeds."),
    click.option("--defer/--no-defer", default=None, help="Read what is missing elsewhere."),
    click.option("--state", metavar="DIR", help="Artifacts to defer to and to compare with."),
    *_READING,
)
_THREADS = click.option("--threads", type=click.IntRange(min=1), metavar="N", help="dbt's threads.")
_REST = click.argument("rest", nargs=-1, type=click.UNPROCESSED, metavar="[-- DBT OPTIONS]")
_FAIL_ON = click.option(
    "--fail-on",
    envvar="SQB_FAIL_ON",
    type=click.Choice(["run", "blocked"]),
    multiple=True,
    help="Exit code 1 if a node would run, or is blocked. Repeatable.",
)

_MEANS = {
    "project_dir": "The dbt project, if not in this folder or above.",
    "target": "The target of the profile.",
    "vars_text": "Variables for dbt, as YAML or JSON.",
    "select": "Nodes, as dbt selects them; several may follow.",
    "exclude": "Nodes to leave out, as dbt selects them.",
}

command = click.Group(
    "dbt",
    help="Plan and build an existing dbt project: only what is stale, without touching its files.",
    epilog="\b\nExample:\n  cd my_dbt_project\n  sqb dbt plan\n  sqb dbt build",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    commands={
        "plan": sqb_command(
            "plan",
            help="Show what a build would hand to dbt, and why.",
            example="sqb dbt plan\nsqb dbt plan --select staging+ --json",
            hides=("no_warm",),
            means=_MEANS,
            cls=_SelectingCommand,
        )(_all((_FAIL_ON, *_SELECTING, _REST), plan)),
        "build": sqb_command(
            "build",
            help="Let dbt build what is stale, and run the tests that are owed.",
            example="sqb dbt build\nsqb dbt build --select fct_orders+ --threads 4 -- --fail-fast",
            hides=("no_warm",),
            means=_MEANS,
            cls=_SelectingCommand,
        )(_all((_THREADS, *_SELECTING, _REST), build)),
        "run": sqb_command(
            "run",
            help="Let dbt run the models that are stale, and nothing else.",
            example="sqb dbt run\nsqb dbt run --full-refresh",
            hides=("no_warm",),
            means=_MEANS,
            cls=_SelectingCommand,
        )(_all((_THREADS, *_SELECTING, _REST), run)),
        "explain": sqb_command(
            "explain",
            help="Tell why a node of the dbt project runs or not.",
            example="sqb dbt explain fct_orders\nsqb dbt explain model.shop.fct_orders --json",
            hides=(*SELECTION, "no_warm"),
            means={name: text for name, text in _MEANS.items() if name not in SELECTION},
            cls=_DbtCommand,
        )(_all((click.argument("node"), *_READING), explain)),
    },
)
