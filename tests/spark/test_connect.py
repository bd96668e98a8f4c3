"""Addresses of Spark Connect servers: what is understood, what is said if nobody is there."""

from __future__ import annotations

import socket

import pytest

from sqb.errors import SqbError
from sqb.spark.connect import open_remote, parse_address


@pytest.mark.parametrize(
    ("remote", "host", "port", "parameters"),
    [
        ("sc://h", "h", 15002, {}),
        ("sc://h:7/", "h", 7, {}),
        ("sc://h/;use_ssl=true;token=a%3Db", "h", 15002, {"use_ssl": "true", "token": "a=b"}),
    ],
)
def test_an_address_has_host_port_and_parameters(
    remote: str, host: str, port: int, parameters: dict[str, str]
) -> None:
    address = parse_address(remote)
    assert (address.host, address.port, address.parameters) == (host, port, parameters)


@pytest.mark.parametrize("remote", ["spark://h:7077", "sc://", "sc://h:no", "sc://h/x", "h:15002"])
def test_another_address_is_refused_without_showing_it(remote: str) -> None:
    with pytest.raises(SqbError) as caught:
        parse_address(f"{remote}/;token=hunter2" if remote != "sc://h/x" else remote)
    assert caught.value.code == "C004"
    assert "hunter2" not in str(caught.value.to_json())


def test_a_server_that_is_not_there_is_told_at_once_and_without_its_token() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(SqbError, match="can't be reached") as caught:
        open_remote(f"sc://127.0.0.1:{port}/;token=hunter2")
    assert (caught.value.code, caught.value.exit_code) == ("J005", 1)
    assert "hunter2" not in str(caught.value.to_json())
