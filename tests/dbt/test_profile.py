"""Profiles of dbt: which one counts, how it is rendered, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sqb.dbt.layout import read_packages, read_project_file, visible_vars
from sqb.dbt.profile import Profile, find_profiles, read_profile
from sqb.dbt.render import Renderer
from sqb.errors import SqbError
from sqb.project.secrets import masker

PROFILES = """
config: {send_anonymous_usage_stats: false}
shop:
  target: "{{ env_var('SHOP_TARGET', 'dev') }}"
  outputs:
    dev:
      type: spark
      method: thrift
      host: localhost
      port: "{{ env_var('SHOP_PORT', '10000') | as_number }}"
      use_ssl: "{{ 'true' | as_bool }}"
      password: "{{ env_var('DBT_ENV_SECRET_PW', 'none') }}"
      schema: "{{ var('prefix', 'x') }}_{{ env_var('SHOP_USER', 'me') }}"
      server_side_parameters:
        spark.sql.ansi.enabled: true
        spark.a: 1
    prod:
      type: spark
      method: session
      schema: "{{ env_var('SHOP_UNSET') }}"
    odd: {type: spark, method: odbc, schema: s}
    web: {type: spark, method: http, schema: s}
    warehouse: {type: snowflake, schema: s}
    bare: {type: spark, method: session}
plain:
  outputs:
    default: {type: spark, method: session, schema: s}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "profiles.yml"
    path.write_text(PROFILES)
    return path


def read(file: Path, name: str | None = "shop", target: str | None = None, **given: Any) -> Profile:
    return read_profile(
        file,
        name,
        target=target,
        environ=given.get("environ", {}),
        variables=given.get("variables", {}),
    )


def test_a_target_is_rendered_as_dbt_does(file: Path) -> None:
    profile = read(file, environ={"SHOP_PORT": "10015"}, variables={"prefix": "p"})
    assert (profile.target, profile.method, profile.schema) == ("dev", "thrift", "p_me")
    assert profile.fields["port"] == 10015
    assert profile.fields["use_ssl"] is True
    assert profile.conf == {"spark.sql.ansi.enabled": "true", "spark.a": "1"}


@pytest.mark.parametrize(
    ("name", "target", "environ", "expected"),
    [
        ("shop", None, {}, "dev"),
        ("shop", "dev", {"SHOP_TARGET": "prod"}, "dev"),
        ("shop", None, {"SHOP_TARGET": "prod", "SHOP_UNSET": "s"}, "prod"),
        ("plain", None, {}, "default"),
    ],
)
def test_which_target_counts(
    file: Path, name: str, target: str | None, environ: dict[str, str], expected: str
) -> None:
    assert read(file, name, target, environ=environ).target == expected


@pytest.mark.parametrize(
    ("name", "target", "code", "words"),
    [
        ("shop", "prod", "B004", "SHOP_UNSET"),
        ("shop", "odd", "B006", "odbc"),
        ("shop", "web", "B006", "http"),
        ("shop", "warehouse", "B006", "snowflake"),
        ("shop", "bare", "B003", "no schema"),
        ("shop", "prd", "B003", "no target `prd`"),
        ("shopp", None, "B003", "no profile `shopp`"),
        (None, None, "B003", "names no profile"),
    ],
)
def test_what_can_not_be_used_is_refused(
    file: Path, name: str | None, target: str | None, code: str, words: str
) -> None:
    with pytest.raises(SqbError, match=words) as caught:
        read(file, name, target)
    assert caught.value.code == code
    assert caught.value.help
    # a line of this file may hold a secret, and the text of an error shows its line
    assert caught.value.line is None


def test_an_error_of_a_profile_names_its_line_without_showing_it(file: Path) -> None:
    with pytest.raises(SqbError, match=r"\(line 20\)"):
        read(file, target="prod")
    file.write_text("shop:\n  a: b: c\n")
    with pytest.raises(SqbError, match=r"\(line 2\)"):
        read(file)


def test_secrets_are_masked_and_not_in_a_repr(file: Path) -> None:
    profile = read(file, environ={"DBT_ENV_SECRET_PW": "hunter22"})
    assert profile.fields["password"] == "hunter22"
    assert "hunter22" not in repr(profile)
    assert masker(None, environ={}, settings=profile.fields)("a hunter22 b") == "a *** b"
    assert masker(None, environ={"DBT_ENV_SECRET_PW": "hunter22"})("hunter22") == "***"


def test_code_sees_no_secret_of_the_target(file: Path) -> None:
    assert set(read(file).visible()) == {
        *("name", "target_name", "profile_name", "type", "host", "port", "schema")
    }


# Where


def test_the_nearest_profiles_count(tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("given", "env", "configured", "project", "home")}
    for name, folder in folders.items():
        place = folder / ".dbt" if name == "home" else folder
        place.mkdir(parents=True)
        (place / "profiles.yml").write_text("{}")
    environ = {"HOME": str(folders["home"]), "DBT_PROFILES_DIR": str(folders["env"])}

    def found(given: str | None, configured: str | None) -> str:
        path = find_profiles(
            folders["project"], given=given, configured=configured, environ=environ
        )
        return path.relative_to(tmp_path).parts[0]

    assert found(str(folders["given"]), str(folders["configured"])) == "given"
    assert found(None, str(folders["configured"])) == "env"
    del environ["DBT_PROFILES_DIR"]
    assert found(None, str(folders["configured"])) == "configured"
    assert found(None, None) == "project"
    (folders["project"] / "profiles.yml").unlink()
    assert found(None, None) == "home"
    (folders["home"] / ".dbt" / "profiles.yml").unlink()
    with pytest.raises(SqbError, match=r"no profiles\.yml"):
        found(None, None)
    with pytest.raises(SqbError, match=r"no profiles\.yml"):
        found(str(tmp_path), None)


# Jinja


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("{{ env_var('A') }}", "1"),
        ("{{ env_var('A') | as_number }}", 1),
        ("{{ env_var('F') | as_number }}", 1.5),
        ("{{ env_var('A') | as_bool }}", "1"),
        ("{{ 'False' | as_bool }}", False),
        ("{{ '[1, 2]' | as_native }}", [1, 2]),
        ("{{ env_var('A') | as_number }}{{ env_var('A') }}", "11"),
        ("{{ env_var('NO', 'd') | upper }}", "D"),
        ("{{ var('v') }}", 3),
        ("{% if env_var('A') == '1' %}yes{% else %}no{% endif %}", "yes"),
        ("{# nothing #}x", "x"),
    ],
)
def test_values_are_rendered_with_their_types(text: str, expected: object) -> None:
    renderer = Renderer("f.yml", environ={"A": "1", "F": "1.5"}, variables={"v": 3})
    assert renderer.render(text, "key") == expected
    assert renderer.render([{"a": text}], "key") == [{"a": expected}]


@pytest.mark.parametrize(
    "text", ["{{ env_var('X') }}", "{{ var('x') }}", "{{ x }}", "{{ 1/0 }}", "{{"]
)
def test_what_can_not_be_rendered_is_an_error_with_its_key(text: str) -> None:
    renderer = Renderer("f.yml", environ={}, variables={})
    with pytest.raises(SqbError, match="`key`") as caught:
        renderer.render(text, "key", f"a: 1\nkey: {text}")
    assert (caught.value.code, caught.value.line) == ("B004", 2)


def test_a_password_that_looks_like_jinja_is_taken_as_it_is() -> None:
    renderer = Renderer("f.yml", environ={}, variables={})
    assert renderer.render({"password": "a{{b"}, "dev") == {"password": "a{{b"}


# Variables


def test_variables_are_found_in_the_order_of_dbt(tmp_path: Path) -> None:
    (tmp_path / "dbt_packages" / "pkg").mkdir(parents=True)
    (tmp_path / "dbt_project.yml").write_text(
        "name: shop\nvars: {all: 1, over: 1, day: 2026-01-01, pkg: {over: 2}, shop: {own: 1}}\n"
    )
    (tmp_path / "dbt_packages" / "pkg" / "dbt_project.yml").write_text(
        "name: pkg\nvars: {own: 3, over: 3, pkg: {deep: 3}}\n"
    )
    project = read_project_file(tmp_path, environ={}, variables={})
    packages = read_packages(project, environ={}, variables={})
    seen = visible_vars(project, packages, {"all": "cli"})
    shop = {key: seen["shop"][key] for key in ("all", "over", "own", "day")}
    assert shop == {"all": '"cli"', "over": "1", "own": "1", "day": '"2026-01-01"'}
    pkg = {key: seen["pkg"][key] for key in ("all", "over", "own", "deep")}
    assert pkg == {"all": '"cli"', "over": "2", "own": "3", "deep": "3"}


def test_variables_may_stand_in_a_file_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "dbt_project.yml").write_text(
        "name: shop\nmodel-paths: [\"{{ var('folder') }}\"]\n"
    )
    (tmp_path / "vars.yml").write_text("vars: {folder: models2}\n")
    project = read_project_file(tmp_path, environ={}, variables={})
    assert (project.folders[0], project.vars) == ("models2", {"folder": "models2"})


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "no `name`"), ("name: [", "not valid YAML"), ("- a", "must hold a mapping")],
)
def test_a_bad_project_file_is_refused(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "dbt_project.yml").write_text(text)
    with pytest.raises(SqbError, match=words) as caught:
        read_project_file(tmp_path, environ={}, variables={})
    assert caught.value.code == "B007"
