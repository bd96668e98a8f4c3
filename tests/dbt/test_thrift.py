"""The end of the line to a thrift server that sqb holds: what is said, and what goes wrong."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from servers import free_port

from sqb.dbt.profile import Profile
from sqb.dbt.thrift import Thrift, login, told
from sqb.errors import SqbError

PLAIN: dict[str, Any] = {
    "host": "spark",
    "port": 443,
    "user": None,
    "auth": None,
    "kerberos_service_name": None,
    "password": None,
    "use_ssl": False,
    "configuration": {"spark.sql.ansi.enabled": "false"},
    "retries": 0,
    "pause": 10,
    "retry_all": False,
}

#: title, settings of the target, what differs from ``PLAIN``
LOGINS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("a host alone", {}, {}),
    ("a host with a slash", {"host": "spark/"}, {}),
    ("a port in a text", {"port": "10001"}, {"port": 10001}),
    (
        "a password",
        {"user": "me", "auth": "LDAP", "password": 123456},
        {"user": "me", "auth": "LDAP", "password": "123456"},
    ),
    (
        "Kerberos",
        {"auth": "KERBEROS", "kerberos_service_name": "hive"},
        {"auth": "KERBEROS", "kerberos_service_name": "hive"},
    ),
    ("TLS", {"use_ssl": True}, {"use_ssl": True}),
    ("TLS in a text", {"use_ssl": "true"}, {"use_ssl": True}),
    ("no TLS in a text", {"use_ssl": "false"}, {}),
    (
        "settings of the session",
        {"server_side_parameters": {"spark.a": 7, "spark.b": True}},
        {"configuration": {"spark.a": "7", "spark.b": "true", "spark.sql.ansi.enabled": "false"}},
    ),
    (
        "ANSI mode stays off, as dbt-spark has it",
        {"server_side_parameters": {"spark.sql.ansi.enabled": "true"}},
        {},
    ),
    (
        "attempts",
        {"connect_retries": 3, "connect_timeout": "2", "retry_all": True},
        {"retries": 3, "pause": 2, "retry_all": True},
    ),
]


def profile(**fields: Any) -> Profile:
    base = {"type": "spark", "method": "thrift", "host": "spark", "schema": "shop"}
    return Profile("profiles.yml", "shop", "dev", {**base, **fields})


@pytest.mark.parametrize(
    ("fields", "differs"), [case[1:] for case in LOGINS], ids=[c[0] for c in LOGINS]
)
def test_what_is_connected_with(fields: dict[str, Any], differs: dict[str, Any]) -> None:
    assert login(profile(**fields)) == {**PLAIN, **differs}


def test_a_port_that_is_no_number_is_told() -> None:
    with pytest.raises(SqbError, match="`port` of the target `dev`") as caught:
        login(profile(port="{{ x }}"))
    assert caught.value.code == "B003"


TOLD = [
    ("plain words", "plain words"),
    ("", "it does not say why"),
    (
        "Error running query: [PARSE_SYNTAX_ERROR] Error near 'x'. SQLSTATE: 42601\n\tat a.b",
        "[PARSE_SYNTAX_ERROR] Error near 'x'.",
    ),
    (
        "java.lang.RuntimeException: the file\n  went\n\tat java.base/a.b\nCaused by: c.D: e",
        "the file went",
    ),
]


@pytest.mark.parametrize(("text", "words"), TOLD)
def test_a_servers_error_is_told_without_its_stack(text: str, words: str) -> None:
    assert told(text) == words


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def ask(executable: Path, **fields: Any) -> SqbError:
    thrift = Thrift(profile(**fields), executable, os.environ)
    with pytest.raises(SqbError) as caught:
        thrift.rows("SELECT 1")
    thrift.close()
    assert caught.value.code == "B011"
    return caught.value


def test_a_python_without_pyhive_is_told(tmp_path: Path) -> None:
    error = ask(script(tmp_path / "dbt", f"#!{sys.executable}\n"))
    assert "No module named 'pyhive'" in error.message
    assert "dbt-spark[PyHive]" in str(error.help)


def test_a_dbt_whose_python_can_not_be_told_needs_pyhive_here(tmp_path: Path) -> None:
    error = ask(script(tmp_path / "dbt", "#!/bin/sh\nexec dbt2\n"))
    assert "which Python runs dbt can't be told" in error.message
    assert "DBT_EXECUTABLE" in str(error.help)


def test_a_python_that_is_not_there_is_told(tmp_path: Path) -> None:
    error = ask(script(tmp_path / "dbt", f"#!{tmp_path}/bin/python\n"))
    assert (error.file, "No such file" in error.message) == (f"{tmp_path}/bin/python", True)


def test_a_python_that_dies_is_told_without_secrets(tmp_path: Path) -> None:
    python = script(
        tmp_path / "bin" / "python3", "#!/bin/sh\necho 'hunter22 is wrong' >&2\nexit 3\n"
    )
    error = ask(script(tmp_path / "dbt", f"#!{python}\n"), password="hunter22", auth="LDAP")
    assert error.message.endswith("while the thrift server was asked: *** is wrong")


@pytest.mark.dbt
def test_a_server_that_is_not_there_is_told(dbt: Path) -> None:
    error = ask(dbt, host="127.0.0.1", port=free_port(), user="me")
    assert "at 127.0.0.1:" in error.message
    assert "dbt debug" in str(error.help)


@pytest.mark.dbt
def test_what_pyhive_refuses_is_told(dbt: Path) -> None:
    error = ask(dbt, host="127.0.0.1", port=free_port(), password="hunter22")
    assert "Password should be set if and only if" in error.message
    assert "hunter22" not in f"{error.message} {error.help}"
