"""The sample project is found as a user's would be: profile, catalog, source table."""

from __future__ import annotations

from pathlib import Path

from dbt_shop import Shop, load_visits, session_target, thrift_target, visit

from sqb.dbt.catalog import catalog_of
from sqb.dbt.layout import read_packages, read_project_file, visible_vars
from sqb.dbt.profile import find_profiles, read_profile
from sqb.lake.opening import open_lake
from sqb.spark.settings import SparkSettings


def test_the_lake_of_a_session_is_found_and_holds_the_source(tmp_path: Path) -> None:
    uri, warehouse = f"sqlite:///{tmp_path / 'catalog.db'}", str(tmp_path / "data")
    settings = SparkSettings("lake", uri, warehouse)
    targets = {"session": session_target(settings), "thrift": thrift_target(10000)}
    shop = Shop(tmp_path, targets)
    file = find_profiles(shop.root, given=None, configured=None, environ=shop.environ)
    profile = read_profile(file, "shop", target=None, environ=shop.environ, variables={})
    assert (profile.target, profile.method, profile.schema) == ("session", "session", "shop")
    given = {"conf": profile.conf, "defaults": {}, "root": shop.root}
    catalog = catalog_of(None, method=profile.method, host="NA", **given)
    assert catalog is not None
    assert (catalog.name, catalog.uri, catalog.warehouse) == ("lake", uri, warehouse)
    load_visits(uri, warehouse, [visit(1), visit(2)])
    first = open_lake(catalog, None).head("app", "visits")
    load_visits(uri, warehouse, [visit(3)])
    second = open_lake(catalog, None).head("app", "visits")
    assert first is not None
    assert second is not None
    assert first.location != second.location
    assert shop.changed() == []


def test_packages_and_variables_of_the_sample(shop: Shop) -> None:
    project = read_project_file(shop.root, environ={}, variables={})
    packages = read_packages(project, environ={}, variables={})
    assert [package.name for package in packages] == ["money"]
    seen = visible_vars(project, packages, {})
    assert seen["money"]["currency"] == '"EUR"'
    assert seen["shop"]["vip_from"] == "100"
