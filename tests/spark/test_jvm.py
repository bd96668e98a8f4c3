"""Which JVM options a driver gets."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqb.spark.jvm import java_options

QUICK = "-XX:TieredStopAtLevel=1"
SERIAL = "-XX:+UseSerialGC"
ARCHIVE = "-XX:SharedArchiveFile=/c/a.jsa -Xshare:auto"


@pytest.mark.parametrize(
    ("own", "input_bytes", "archive", "expected"),
    [
        ("", 0, None, f"{QUICK} {SERIAL}"),
        ("", 100, None, f"{QUICK} {SERIAL}"),
        ("", 101, None, ""),
        ("", None, None, ""),
        ("", None, "/c/a.jsa", ARCHIVE),
        ("", 1, "/c/a.jsa", f"{QUICK} {SERIAL} {ARCHIVE}"),
        ("-Dx=1", 1, None, f"{QUICK} {SERIAL} -Dx=1"),
        ("-XX:+UseG1GC", 1, None, f"{QUICK} -XX:+UseG1GC"),
        ("-XX:-TieredCompilation", 1, None, f"{SERIAL} -XX:-TieredCompilation"),
        ("-Xshare:off", None, "/c/a.jsa", "-Xshare:off"),
        ("", None, "/c d/a.jsa", ""),
    ],
)
def test_small_work_gets_a_quick_jvm_and_the_users_options_win(
    own: str, input_bytes: int | None, archive: str | None, expected: str
) -> None:
    path = Path(archive) if archive else None
    found = java_options(own, input_bytes=input_bytes, small_bytes=100, archive=path)
    assert found == expected
