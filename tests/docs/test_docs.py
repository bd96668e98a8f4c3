"""The documentation is run: its files make projects that compile, its commands print what it says.

A fenced block says in its info string what it is. ``title=PATH`` is a file of the page's project;
``console run`` is a terminal, its commands are run and their output compared; ``python run`` is
executed with a Spark session named ``spark``; ``sql part`` is SQL that is no whole file. What
happens on a page happens in the page's order, in one folder.

``SQB_DOCS_UPDATE=1 pytest tests/docs`` writes the real output into the pages.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
import pytest

from sqb.api import Project
from sqb.cli import call as cli_call
from sqb.cli.main import COMMANDS, LATER, cli, run
from sqb.errors import CODES
from sqb.planning.plan import OWN_REASONS
from sqb.project.config import load_config
from sqb.project.config_schema import SCHEMA, AnyKey
from sqb.project.keys import ALIASES, KEYS
from sqb.project.seed_specs import CsvSettings
from sqb.project.sources import load_sources
from sqb.refresh.reasons import CODES as REASONS
from sqb.spark.session import SparkSettings
from sqb.state.tables import FINGERPRINTS, FRESHNESS, arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
#: Commands that need Spark: these get the session that all tests share.
WITH_SPARK = ("build", "query", "seed", "verify")

_BLOCK = re.compile(r"^```(?P<info>[^\n`]+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_NOISE = (
    # a session that was handed in is not started
    (re.compile(r"^(starting Spark|Spark is up).*\n", re.MULTILINE), ""),
    (re.compile(r"\d{8}T\d{6}-[0-9a-f]{6}"), "RUN"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d( UTC)?"), "TIME"),
    (re.compile(r"\b(\d+m )?\d+(\.\d+)?s\b"), "TOOK"),
    (re.compile(r"AS OF \d+"), "AS OF SNAPSHOT"),
    (re.compile(r"\b[0-9a-f]{8}\b"), "ID"),
    (re.compile(r"docs_\d+"), "dev"),
    (re.compile(r"\b\d+(\.\d)? k?B\b"), "SIZE"),
    (re.compile(r"[ \t]+"), " "),
    (re.compile(r" $", re.MULTILINE), ""),
)


class Block(msgspec.Struct, frozen=True):
    """One fenced block of a page."""

    language: str
    words: tuple[str, ...]
    title: str | None
    text: str
    line: int
    span: tuple[int, int]


def blocks(page: Path) -> Iterator[Block]:
    """The fenced blocks of a page that have an info string."""
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        language, *words = shlex.split(found["info"])
        titles = [word.removeprefix("title=") for word in words if word.startswith("title=")]
        line = text.count("\n", 0, found.start()) + 1
        title = titles[0] if titles else None
        yield Block(language, tuple(words), title, found["text"], line, found.span("text"))


def needs_spark(page: Path) -> bool:
    return any(
        (b.language == "python" and "run" in b.words)
        or (b.language == "console" and "run" in b.words and _spark_lines(b.text))
        for b in blocks(page)
    )


def _spark_lines(text: str) -> list[str]:
    return [
        line for line in text.splitlines() if re.match(rf"\$ sqb ({'|'.join(WITH_SPARK)})\b", line)
    ]


class Reader:
    """Someone who does what a page says, in a folder of their own."""

    def __init__(self, folder: Path, spark: SparkSession | None, lake: str) -> None:
        self.here, self.spark, self.lake = folder / "work", spark, lake
        self.here.mkdir()
        self.began = 0.0
        self.variables = {k: v for k, v in os.environ.items() if not k.startswith("SQB_")}
        self.variables |= {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
        self.variables |= {"NO_COLOR": "1", "LC_ALL": "C.UTF-8", "PYTHONPATH": str(ROOT / "src")}
        for name, start in (("sqb", "-m sqb "), ("python", "")):
            script = folder / "bin" / name
            script.parent.mkdir(exist_ok=True)
            script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {start}"$@"\n')
            script.chmod(0o755)

    def write(self, path: str, text: str) -> None:
        file = self.here / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        if path.endswith(".toml"):
            load_config(self.here, target=None, cli_vars={}, environ=self.variables)
        elif path.startswith("sources/"):
            assert load_sources({path: text.encode()}, self.variables)

    def project(self) -> None:
        """Make the folder a project if the page has not, on the shared lake if Spark is needed."""
        if not (self.here / "sqlbuild_project.toml").exists():
            (self.here / "sqlbuild_project.toml").touch()
        local = self.here / "sqlbuild_local.toml"
        if self.spark is not None and not local.exists():
            local.write_text(self.lake)
            (self.here / "lake").symlink_to(_value("warehouse", self.lake))

    def playground(self, name: str) -> None:
        """The lake that a playground will find: on a page with builds the shared one."""
        if self.spark is not None:
            (self.here / name).mkdir()
            (self.here / name / "lake").symlink_to(_value("warehouse", self.lake))
            (self.here / name / "sqlbuild_local.toml").write_text(self.lake)

    def idle(self, words: list[str]) -> bool:
        """Will the command find nothing to do? Then it must do so without Spark."""
        return words[1:] == ["build"] and not Project(self.here, environ=self.variables).plan().work

    def type(self, command: str, capsys: pytest.CaptureFixture[str]) -> str:
        """Run one command; everything that it prints."""
        words = shlex.split(command, comments=True)
        if words[0] == "cd":
            self.here /= words[1]
            return ""
        if words[:2] == ["sqb", "playground"]:
            self.playground(words[2])
        elif words[:2] != ["sqb", "init"]:
            self.project()
        if words[0] == "sqb" and words[1] in WITH_SPARK and not self.idle(words):
            capsys.readouterr()
            self.began = time.perf_counter()
            schema = _value("schema", self.lake)
            run([word.replace("dev.", f"{schema}.") for word in words[1:]])
            captured = capsys.readouterr()
            return captured.out + captured.err
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.here,
            env=self.variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            text=True,
        )
        return done.stdout.replace(str(self.here), "/home/me/" + self.here.name)


def _value(key: str, toml: str) -> str:
    found = re.search(rf'{key} = "([^"]+)"', toml)
    assert found is not None
    return found[1]


_RESULTS = re.compile(r"(?:^ +\d+/\d+ .*\n)+", re.MULTILINE)


def _any_order(lines: re.Match[str]) -> str:
    """Models that run side by side finish as they like."""
    return "".join(sorted(re.sub(r"^ +\d+/", "N/", line) for line in lines[0].splitlines(True)))


def normal(text: str) -> str:
    text = _RESULTS.sub(_any_order, text)
    for pattern, word in _NOISE:
        text = pattern.sub(word, text)
    return text.strip()


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a terminal and what each printed."""
    command, printed = None, ""
    for line in text.splitlines(keepends=True):
        if line.startswith("$ "):
            if command is not None:
                yield command, printed
            command, printed = line[2:].rstrip("\n"), ""
        else:
            printed += line
    if command is not None:
        yield command, printed


def pages(*, spark: bool) -> list[Any]:
    return [pytest.param(p, id=p.name) for p in PAGES if needs_spark(p) is spark]


@pytest.mark.parametrize("page", pages(spark=False))
def test_a_page_tells_the_truth(
    page: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    follow(page, Reader(tmp_path, None, ""), capsys)


@pytest.mark.parametrize("page", pages(spark=True))
def test_a_page_with_builds_tells_the_truth(
    page: Path,
    tmp_path: Path,
    spark: SparkSession,
    spark_settings: SparkSettings,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lake = (
        f'[targets.dev]\nschema = "docs_{PAGES.index(page)}"\n[catalog]\n'
        f'uri = "{spark_settings.catalog_uri}"\nwarehouse = "{spark_settings.warehouse}"\n'
        # how a small table is brought up to date must not hang on how busy the machine is
        "[refresh]\nsmall_seconds = 100000\n"
    )
    reader = Reader(tmp_path, spark, lake)

    def project(call: cli_call.Call) -> Project:
        found = Project(reader.here, target=call.target, spark=spark, environ=reader.variables)
        call.config = found.config
        # the modules were imported long ago, and a command counts from there
        call._started = reader.began
        return found

    monkeypatch.setattr(cli_call.Call, "project", project)
    monkeypatch.setattr(cli_call.Call, "root", lambda _: reader.here)
    follow(page, reader, capsys)


def follow(page: Path, reader: Reader, capsys: pytest.CaptureFixture[str]) -> None:
    """Do all that the page says and compare what it shows."""
    printed_now: list[tuple[tuple[int, int], str]] = []
    for block in blocks(page):
        place = f"{page.name}:{block.line}"
        if block.title is not None:
            reader.write(block.title, block.text)
        elif block.language == "console" and "run" in block.words:
            shown = real = ""
            for command, printed in commands(block.text):
                told = reader.type(command, capsys)
                shown += f"$ {command}\n{printed}"
                real += f"$ {command}\n{told}"
            if not os.environ.get("SQB_DOCS_UPDATE"):
                assert normal(shown) == normal(real), place
            elif normal(shown) != normal(real):
                printed_now.append((block.span, _tidy(real)))
        elif block.language == "python" and "run" in block.words:
            reader.project()
            before = Path.cwd()
            os.chdir(reader.here)
            try:
                exec(compile(block.text, place, "exec"), {"spark": reader.spark})
            finally:
                os.chdir(before)
        else:
            assert block.language not in ("sql", "toml", "yaml") or "part" in block.words, (
                f"{place}: say which file this is (title=…), or that it is a part"
            )
    if any(block.title for block in blocks(page)):
        reader.project()
        assert Project(reader.here, environ=reader.variables).expected
    if printed_now:
        text = page.read_text()
        for (start, end), real in reversed(printed_now):
            text = text[:start] + real + text[end:]
        page.write_text(text)


def _tidy(text: str) -> str:
    text = re.sub(r"docs_\d+", "dev", text)
    text = _NOISE[0][0].sub("", text)
    lines = [line.rstrip() for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return "\n".join(lines) + "\n"


def _slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize(
    "page", [*PAGES, *(p for p in sorted(ROOT.glob("*.md")))], ids=lambda p: p.name
)
def test_links_lead_somewhere(page: Path) -> None:
    text = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), f"{page.name} links to {target}"
        if anchor:
            headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in map(_slug, headings), f"{page.name} links to {target}"


def test_every_page_is_on_the_map() -> None:
    index = (DOCS / "index.md").read_text()
    assert [p.name for p in PAGES if f"]({p.name})" not in index and p.name != "index.md"] == []


def test_every_error_code_is_listed_and_no_other() -> None:
    listed = re.findall(r"^\| `([A-Z]\d{3})` \|", (DOCS / "errors.md").read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(CODES)
    assert len(set(listed)) == len(listed)


def _named(page: str, words: Iterator[str] | list[str]) -> list[str]:
    text = (DOCS / page).read_text()
    return [word for word in words if f"`{word}`" not in text]


def test_every_header_key_is_in_models() -> None:
    assert _named("models.md", [*KEYS, *ALIASES]) == []


def _toml_keys(rule: object) -> Iterator[str]:
    if isinstance(rule, AnyKey):
        yield from _toml_keys(rule.rule)
    elif isinstance(rule, dict):
        for key, inner in rule.items():
            yield key
            yield from _toml_keys(inner)


def test_every_toml_key_is_in_configuration() -> None:
    text = (DOCS / "configuration.md").read_text()
    missing = [k for k in _toml_keys(SCHEMA) if not re.search(rf"\b{re.escape(k)}\b", text)]
    assert missing == []


def test_every_source_and_csv_setting_is_documented() -> None:
    from sqb.project import seed_specs, sources

    assert _named("sources.md", [*sources._KEYS, *sources._FRESHNESS_KEYS]) == []
    assert _named("freshness.md", [*sources._FRESHNESS_KEYS]) == []
    assert _named("seeds.md", [*seed_specs._KEYS, *CsvSettings.__struct_fields__]) == []


def test_every_command_and_option_is_in_commands() -> None:
    text = (DOCS / "commands.md").read_text()
    missing = [name for name in COMMANDS if f"`sqb {name}" not in text]
    missing += [name for name in LATER if f"`{name}`" not in text]
    for name in COMMANDS:
        found = cli.get_command(click.Context(cli), name)
        assert found is not None
        for option in found.params:
            if isinstance(option, click.Option) and not option.hidden:
                long = max(option.opts, key=len)
                missing += [f"{name} {long}"] if f"`{long}" not in text else []
    assert missing == []


def test_every_reason_has_a_meaning() -> None:
    others = ["upstream_changed", "upstream_unchanged", "source_changed", "source_unknown"]
    others += ["schema_changed", "no_change", "source_freshness_error"]
    assert _named("what-runs-and-why.md", [*sorted(OWN_REASONS), *others]) == []


def test_every_code_of_a_strategy_has_a_meaning() -> None:
    assert _named("row-level.md", list(REASONS)) == []
    used = re.compile(
        r"""(?:Refused|NotDerivable|full)\(\s*"([A-Z_]+)"|"""
        r"""(?:Unsupported|Rejected)\([^,()]+,\s*"([A-Z_]+)\""""
    )
    found = {
        code
        for room in ("refresh", "execution", "planning", "sql")
        for file in (ROOT / "src/sqb" / room).rglob("*.py")
        for pair in used.findall(file.read_text())
        for code in pair
        if code
    }
    assert len(found) > 10
    assert found <= set(REASONS)


def test_every_column_of_the_state_tables_is_in_publishing() -> None:
    names = [name for table in (FINGERPRINTS, FRESHNESS) for name in arrow_schema(table).names]
    assert _named("publishing.md", [FINGERPRINTS, FRESHNESS, *names]) == []


def test_every_schema_file_is_linked_from_commands() -> None:
    text = (DOCS / "commands.md").read_text()
    assert [
        p.name for p in sorted((DOCS / "json").glob("*.json")) if f"json/{p.name}" not in text
    ] == []
