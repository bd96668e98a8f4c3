"""Masking."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqb.project.config import Config, load_config
from sqb.project.secrets import is_secret_key, mask, masked, masker

TOML = """
[catalog.properties]
"s3.secret-access-key" = "s3cr3tvalue"
token = "tok-123456"
plain = "visible"
[targets.dev.state]
connection = "postgresql://me:hunter22@db/x"
[spark]
remote = "sc://spark.example.com:15002/;use_ssl=true;token=t0k3n;x-header=h3ad3r;user_id=anna"
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
        ("t0k3n and h3ad3r of anna are true", "*** and *** of anna are true"),
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


def test_the_masker_knows_secrets_and_guesses_none(config: Config) -> None:
    apply = masker(config, environ={"SQB_SECRET_X": "from the environment"})
    assert apply("WHERE t.token = s.token AND x = 'tok-123456'") == (
        "WHERE t.token = s.token AND x = '***'"
    )
    assert apply("from the environment") == "***"
    assert apply("see s3://user:pass@bucket") == "see s3://***@bucket"


def test_a_secret_is_found_decoded_and_escaped(tmp_path: Path) -> None:
    (tmp_path / "sqlbuild_project.toml").write_text(
        "[catalog.properties]\ntoken = 'a\"b\\\\c'\n"
        "[targets.dev.state]\nconnection = 'postgresql://me:p%40ss%2Fword@db/x'\n"
    )
    found = load_config(tmp_path, target=None, cli_vars={}, environ={})
    apply = masker(found, environ={})
    assert apply("login failed for p@ss/word") == "login failed for ***"
    assert apply('{"x": "a\\"b\\\\\\\\c"}') == '{"x": "***"}'


def test_every_text_of_a_value_is_masked(config: Config) -> None:
    value = {"a": ["tok-123456", 1, None, {"b": "x hunter22"}]}
    assert masked(value, masker(config, environ={})) == {"a": ["***", 1, None, {"b": "x ***"}]}


def test_what_only_sounds_like_a_secret_is_shown(tmp_path: Path) -> None:
    (tmp_path / "sqlbuild_project.toml").write_text(
        '[spark.conf]\n"spark.sql.sources.v2.bucketing.pushPartKeys.enabled" = "true"\n'
        '[vars]\nkey_column = "customer"\nkey_token = "hidden"\n'
    )
    apply = masker(load_config(tmp_path, target=None, cli_vars={}, environ={}), environ={})
    assert apply("true customer hidden") == "true customer ***"


def test_a_password_is_masked_as_it_is_written_and_as_it_is_meant(tmp_path: Path) -> None:
    (tmp_path / "sqlbuild_project.toml").write_text(
        "[catalog]\nuri = 'postgresql://me:p%40ssw0rd@h/d'"
    )
    config = load_config(tmp_path, target=None, cli_vars={}, environ={})
    masked = mask("p%40ssw0rd, p@ssw0rd", config, environ={})
    assert "ssw0rd" not in masked
