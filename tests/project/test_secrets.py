"""Masking."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqb.project.config import Config, load_config
from sqb.project.secrets import is_secret_key, mask

TOML = """
[catalog.properties]
"s3.secret-access-key" = "s3cr3tvalue"
token = "tok-123456"
plain = "visible"
[targets.dev.state]
connection = "postgresql://me:hunter22@db/x"
[vars]
api_key = "abcd-efgh"
unique_key = "customer_id"
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Config:
    root: Path = tmp_path_factory.mktemp("secret")
    (root / "sqlbuild_project.toml").write_text(TOML)
    return load_config(root, target=None, cli_vars={}, environ={})


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("key is s3cr3tvalue!", "key is ***!"),
        ("got tok-123456", "got ***"),
        ("visible customer_id", "visible customer_id"),
        ("user hunter22", "user ***"),
        ("var abcd-efgh", "var ***"),
        ("jdbc:postgresql://u:p@h:5/d", "jdbc:postgresql://***@h:5/d"),
        ("http://u:p@ss@h/d", "http://***@h/d"),
        ("http://h/d?x=a@b", "http://h/d?x=a@b"),
        ("password=abc, x=1", "password=***, x=1"),
        ('{"client_secret": "a b"}', '{"client_secret": ***}'),
        ("s3.access-key-id: AK", "s3.access-key-id: ***"),
        ("unique_key: id", "unique_key: id"),
        ("env zzzz9", "env ***"),
    ],
)
def test_no_secret_is_left_and_nothing_else_is_touched(
    config: Config, text: str, masked: str
) -> None:
    assert mask(text, config, environ={"SQB_SECRET_X": "zzzz9", "OTHER": "visible"}) == masked


def test_masking_works_before_there_is_a_config() -> None:
    assert mask("sqlite://u:p@x", None, environ={}) == "sqlite://***@x"


@pytest.mark.parametrize(
    ("key", "secret"),
    [("password", True), ("S3.Secret-Access-Key", True), ("key", True), ("group_key", False)],
)
def test_keys_of_data_are_no_secrets(key: str, secret: bool) -> None:
    assert is_secret_key(key) is secret


def test_a_password_is_masked_as_it_is_written_and_as_it_is_meant(tmp_path: Path) -> None:
    (tmp_path / "sqlbuild_project.toml").write_text(
        "[catalog]\nuri = 'postgresql://me:p%40ssw0rd@h/d'"
    )
    config = load_config(tmp_path, target=None, cli_vars={}, environ={})
    masked = mask("p%40ssw0rd, p@ssw0rd", config, environ={})
    assert "ssw0rd" not in masked
