"""What a user asked ``sqb dbt`` for, in dbt's own options.

Options that sqb must understand have a field; all others stand after ``--`` and are dbt's. Which of
those also matter to reading the project or to selecting is written down here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from sqb.errors import SqbError

#: What ``dbt run`` runs, and what ``dbt build`` does, of the nodes that sqb knows.
TYPES = {
    "run": frozenset({"model"}),
    "build": frozenset({"model", "seed", "snapshot", "test", "unit_test", "function"}),
}

#: Options of dbt that take one value, and those that take all words up to the next option.
_ONE = frozenset(
    {
        *("--defer-state", "--deprecated-defer", "--deprecated-favor-state", "--deprecated-state"),
        *("--event-time-end", "--event-time-start", "--indirect-selection", "--log-file-max-bytes"),
        *("--log-format", "--log-format-file", "--log-level", "--log-level-file", "--log-path"),
        *("--partial-parse-file-path", "--printer-width", "--record-timing-info", "-r", "--sample"),
        *("--sqlparse", "--warn-error-options"),
    }
)
_SELECTED_TYPES = ("--resource-type", "--resource-types")
_EXCLUDED_TYPES = ("--exclude-resource-type", "--exclude-resource-types")
_MANY = frozenset({*_SELECTED_TYPES, *_EXCLUDED_TYPES})

#: Options that have a field, by what to write for them.
_FIELDS = {
    **dict.fromkeys(("--select", "-s", "--models", "--model", "-m"), "--select"),
    **dict.fromkeys(("--full-refresh", "-f"), "--full-refresh"),
    **dict.fromkeys(("--target", "-t"), "--target"),
    **{
        name: name
        for name in (
            *("--exclude", "--selector", "--vars", "--threads", "--profile", "--project-dir"),
            *("--profiles-dir", "--target-path", "--defer", "--no-defer", "--state"),
        )
    },
}

#: Of the options after ``--``: those that say what is selected, and those that say how to read.
_SELECTING = frozenset({*_MANY, "--indirect-selection"})
_READING = frozenset(
    {
        *("--partial-parse", "--no-partial-parse", "--partial-parse-file-diff"),
        *("--no-partial-parse-file-diff", "--static-parser", "--no-static-parser"),
        *("--use-experimental-parser", "--no-use-experimental-parser", "--version-check"),
        *("--no-version-check", "--warn-error", "--warn-error-options", "--use-fast-test-edges"),
        *("--no-use-fast-test-edges", "--partial-parse-file-path"),
    }
)
#: A run with one of these leaves tables that are not what the project says.
_PARTIAL = frozenset({"--empty", "--sample", "--event-time-start", "--event-time-end"})


class Option(msgspec.Struct, frozen=True):
    """One option as it was written, with its values."""

    name: str
    words: tuple[str, ...]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One call. Folders are as dbt takes them; ``rest`` is what stood after ``--``."""

    command: str = "build"
    select: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    selector: str | None = None
    vars: str | None = None
    full_refresh: bool = False
    threads: int | None = None
    target: str | None = None
    profile: str | None = None
    project_dir: str | None = None
    profiles_dir: str | None = None
    target_path: str | None = None
    defer: bool | None = None
    state: str | None = None
    rest: tuple[str, ...] = ()

    @property
    def options(self) -> tuple[Option, ...]:
        """The options after ``--``, one by one."""
        return split_options(self.rest)

    @property
    def selecting(self) -> tuple[Option, ...]:
        """Those that narrow or widen what is selected."""
        return tuple(o for o in self.options if o.name in _SELECTING)

    @property
    def reading(self) -> tuple[Option, ...]:
        """Those that say how dbt reads the project."""
        return tuple(o for o in self.options if o.name in _READING)

    @property
    def running(self) -> tuple[Option, ...]:
        """Those that are left for the run itself: what is selected is settled by then."""
        return tuple(o for o in self.options if o.name not in _SELECTING)

    @property
    def partial(self) -> str | None:
        """The option that makes dbt build less than the whole data, if there is one.

        What such a run leaves must not be recorded as current.

        >>> Request(rest=("--fail-fast", "--sample=3 days")).partial
        '--sample'
        """
        last: dict[str, str] = {}
        for option in self.options:
            name = option.name
            if name in _PARTIAL or name == "--no-empty":
                last[name.replace("--no-", "--")] = name
        return next((name for name in last.values() if name != "--no-empty"), None)

    @property
    def favors_state(self) -> bool:
        """Whether nodes that are not handed to dbt are read from the other environment.

        Then leaving out a current node changes what is read below it.
        """
        names = [o.name for o in self.options if o.name in {"--favor-state", "--no-favor-state"}]
        return bool(self.defer) and names[-1:] == ["--favor-state"]


def split_options(words: Sequence[str]) -> tuple[Option, ...]:
    """Words of a command line as options of dbt; what is not known is taken for a flag.

    >>> [o.words for o in split_options(["-x", "--log-level", "debug", "--sample=1 day"])]
    [('-x',), ('--log-level', 'debug'), ('--sample=1 day',)]
    """
    found: list[Option] = []
    at = 0
    while at < len(words):
        name, equals, _ = words[at].partition("=")
        end = at + 1
        if name in _MANY:
            while end < len(words) and not words[end].startswith("-"):
                end += 1
        elif name in _ONE and not equals:
            end = min(end + 1, len(words))
        found.append(Option(name, tuple(words[at:end])))
        at = end
    return tuple(found)


def checked(request: Request) -> Request:
    """The request, if nothing stands after ``--`` that sqb itself must know."""
    for option in request.options:
        written = _FIELDS.get(option.name)
        if written is not None:
            raise SqbError(
                "C008",
                f"`{option.name}` stands after `--`, where sqb does not look",
                help=f"write `{written}` before `--`",
            )
    return request


_TRUE = frozenset({"1", "true", "t", "yes", "y", "on"})
_FALSE = frozenset({"0", "false", "f", "no", "n", "off"})
#: Variables that stand for options after ``--`` which sqb must know of.
_SWITCHES = {"EMPTY": "--empty", "FAVOR_STATE": "--favor-state"}
_VALUES = {
    "SAMPLE": "--sample",
    "EVENT_TIME_START": "--event-time-start",
    "EVENT_TIME_END": "--event-time-end",
}


def completed(request: Request, environ: Mapping[str, str]) -> Request:
    """The request with what dbt takes from the environment where an option is not given.

    >>> completed(Request(target="dev"), {"DBT_TARGET": "prod", "DBT_FULL_REFRESH": "1"})
    ... # doctest: +ELLIPSIS
    Request(command='build', ..., full_refresh=True, threads=None, target='dev', ...)
    """

    def value(name: str) -> str | None:
        # the first of the two is newer, and dbt prefers it
        return environ.get(f"DBT_ENGINE_{name}") or environ.get(f"DBT_{name}") or None

    def switch(name: str) -> bool | None:
        written = (value(name) or "").lower()
        return True if written in _TRUE else False if written in _FALSE else None

    added = [option for name, option in _SWITCHES.items() if switch(name)]
    added += [f"{option}={value(name)}" for name, option in _VALUES.items() if value(name)]
    return msgspec.structs.replace(
        request,
        # in front, for the last one counts
        rest=(*added, *request.rest),
        target=request.target or value("TARGET"),
        profile=request.profile or value("PROFILE"),
        target_path=request.target_path or value("TARGET_PATH"),
        state=request.state or value("STATE"),
        defer=switch("DEFER") if request.defer is None else request.defer,
        full_refresh=request.full_refresh or bool(switch("FULL_REFRESH")),
    )
