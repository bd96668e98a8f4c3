"""Which options of dbt mean what to sqb."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sqb.dbt.request import _FIELDS, _MANY, _ONE, Request, checked, completed, split_options
from sqb.errors import SqbError


@pytest.mark.parametrize(
    ("written", "split"),
    [
        ("", []),
        ("--fail-fast -q", [["--fail-fast"], ["-q"]]),
        ("--log-level debug -x", [["--log-level", "debug"], ["-x"]]),
        ("--log-level=debug -x", [["--log-level=debug"], ["-x"]]),
        ("--log-level", [["--log-level"]]),
        ("--resource-type seed test -x", [["--resource-type", "seed", "test"], ["-x"]]),
        ("--resource-types=seed test", [["--resource-types=seed", "test"]]),
        # a value may look like an option
        ("--warn-error-options --empty -x", [["--warn-error-options", "--empty"], ["-x"]]),
        ("--of-a-later-dbt 3", [["--of-a-later-dbt"], ["3"]]),
    ],
)
def test_words_become_options(written: str, split: list[list[str]]) -> None:
    words = written.split()
    found = split_options(words)
    assert [list(option.words) for option in found] == split
    assert [word for option in found for word in option.words] == words


@pytest.mark.parametrize(
    ("rest", "selecting", "reading", "running"),
    [
        ("", "", "", ""),
        ("--fail-fast", "", "", "--fail-fast"),
        ("--resource-type seed -x", "--resource-type seed", "", "-x"),
        ("--exclude-resource-types=test", "--exclude-resource-types=test", "", ""),
        ("--indirect-selection cautious", "--indirect-selection cautious", "", ""),
        ("--no-partial-parse -q", "", "--no-partial-parse", "--no-partial-parse -q"),
        ("--warn-error-options {}", "", "--warn-error-options {}", "--warn-error-options {}"),
    ],
)
def test_where_an_option_counts(rest: str, selecting: str, reading: str, running: str) -> None:
    request = Request(rest=tuple(rest.split()))
    parts = (request.selecting, request.reading, request.running)
    told = [" ".join(word for option in part for word in option.words) for part in parts]
    assert told == [selecting, reading, running]


@pytest.mark.parametrize(
    ("rest", "partial"),
    [
        ("", None),
        ("--fail-fast", None),
        ("--empty", "--empty"),
        ("--empty --no-empty", None),
        ("--no-empty --empty", "--empty"),
        ("--sample 3", "--sample"),
        ("--sample=3", "--sample"),
        ("--event-time-start 2026-01-01", "--event-time-start"),
        ("--empty --no-empty --event-time-end 2026-01-01", "--event-time-end"),
    ],
)
def test_a_run_of_less_than_all_is_known(rest: str, partial: str | None) -> None:
    assert Request(rest=tuple(rest.split())).partial == partial


@pytest.mark.parametrize(
    ("rest", "defer", "favors"),
    [
        ("--favor-state", True, True),
        ("--favor-state", None, False),
        ("--favor-state --no-favor-state", True, False),
        ("", True, False),
    ],
)
def test_favoring_the_other_state_is_known(rest: str, defer: bool | None, favors: bool) -> None:
    assert Request(defer=defer, rest=tuple(rest.split())).favors_state is favors


@pytest.mark.parametrize(
    ("word", "written"),
    [("--select", "--select"), ("-m", "--select"), ("--state=x", "--state"), ("-t", "--target")],
)
def test_what_sqb_must_know_stands_before_the_dashes(word: str, written: str) -> None:
    with pytest.raises(SqbError) as caught:
        checked(Request(rest=("--fail-fast", word, "x")))
    assert (caught.value.code, caught.value.exit_code) == ("C008", 2)
    assert caught.value.help == f"write `{written}` before `--`"
    assert checked(Request(rest=("--log-path", "--select"))).rest == ("--log-path", "--select")


@pytest.mark.parametrize(
    ("given", "environ", "expected"),
    [
        ({}, {}, {}),
        ({}, {"DBT_TARGET": "prod"}, {"target": "prod"}),
        ({}, {"DBT_TARGET": "prod", "DBT_ENGINE_TARGET": "new"}, {"target": "new"}),
        ({"target": "dev"}, {"DBT_TARGET": "prod"}, {"target": "dev"}),
        ({}, {"DBT_TARGET": ""}, {}),
        ({}, {"DBT_STATE": "s", "DBT_DEFER": "true"}, {"state": "s", "defer": True}),
        ({"defer": False}, {"DBT_DEFER": "1"}, {"defer": False}),
        ({}, {"DBT_DEFER": "0"}, {"defer": False}),
        ({}, {"DBT_FULL_REFRESH": "True"}, {"full_refresh": True}),
        ({"full_refresh": True}, {"DBT_FULL_REFRESH": "false"}, {"full_refresh": True}),
        ({}, {"DBT_TARGET_PATH": "t", "DBT_PROFILE": "p"}, {"target_path": "t", "profile": "p"}),
        ({}, {"DBT_EMPTY": "1"}, {"rest": ("--empty",)}),
        ({"rest": ("--no-empty",)}, {"DBT_EMPTY": "1"}, {"rest": ("--empty", "--no-empty")}),
        ({}, {"DBT_SAMPLE": "3 days"}, {"rest": ("--sample=3 days",)}),
    ],
)
def test_the_environment_completes_a_request(
    given: dict[str, Any], environ: dict[str, str], expected: dict[str, Any]
) -> None:
    assert completed(Request(**given), environ) == Request(**{**given, **expected})


@pytest.mark.dbt_long
def test_every_option_of_dbt_is_split_rightly(dbt: Path) -> None:
    program = """
import json
from dbt.cli.main import cli
print(json.dumps([
    [p.opts + p.secondary_opts, type(p).__name__ == "MultiOption", p.is_flag]
    for name in ("build", "run") for p in cli.commands[name].params
]))
"""
    python = dbt.parent / "python"
    ran = subprocess.run([python, "-c", program], check=True, capture_output=True, text=True)
    for names, many, flag in json.loads(ran.stdout):
        for name in names:
            if name not in _FIELDS:
                kind = "many" if name in _MANY else "one" if name in _ONE else "flag"
                assert kind == ("many" if many else "flag" if flag else "one"), name
