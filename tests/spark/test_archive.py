"""The class archive: when it is wanted, how it is told apart, and that one run makes it for all."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import msgspec
import pytest

from sqb.spark.archive import Request, archive_path, make, wanted
from sqb.spark.java import Java
from sqb.spark.settings import SparkSettings

SETTINGS = SparkSettings(catalog_name="lake", catalog_uri="sqlite:////c.db", warehouse="/w")
JAVA = Java(home="/java", version=17, source="JAVA_HOME")


@pytest.mark.parametrize(
    ("change", "environ", "expected"),
    [
        ({}, {}, True),
        ({}, {"SQB_NO_CLASS_ARCHIVE": "0"}, True),
        ({}, {"SQB_NO_CLASS_ARCHIVE": "1"}, False),
        ({"class_archive": False}, {}, False),
        ({"master": "spark://h:7077"}, {}, False),
        ({"remote": "sc://h"}, {}, False),
    ],
)
def test_archives_are_for_local_jvms_and_can_be_turned_off(
    change: dict[str, object], environ: dict[str, str], expected: bool
) -> None:
    assert wanted(msgspec.structs.replace(SETTINGS, **change), environ) is expected


def test_another_java_jar_or_class_path_has_another_archive(tmp_path: Path) -> None:
    jar = tmp_path / "a.jar"
    jar.write_bytes(b"1")
    environ = {"SQB_CACHE_DIR": str(tmp_path)}
    first = archive_path(SETTINGS, JAVA, [jar], environ)
    assert first == archive_path(SETTINGS, JAVA, [jar], environ)
    other_java = msgspec.structs.replace(JAVA, version=21)
    longer = msgspec.structs.replace(SETTINGS, conf={"spark.driver.extraClassPath": "/x.jar"})
    others = {
        archive_path(SETTINGS, other_java, [jar], environ),
        archive_path(longer, JAVA, [jar], environ),
        archive_path(SETTINGS, JAVA, [], environ),
    }
    jar.write_bytes(b"22")
    others.add(archive_path(SETTINGS, JAVA, [jar], environ))
    assert len(others | {first}) == 5


def test_one_maker_works_and_the_others_leave_it_to_it(tmp_path: Path) -> None:
    target = tmp_path / "classes" / "a.jsa"
    target.parent.mkdir()
    with (target.parent / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert make(Request((), "", str(target)), os.environ) is False
    assert not target.exists()
    target.touch()
    assert make(Request((), "", str(target)), os.environ) is True
