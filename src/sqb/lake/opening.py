"""The one place that knows which lake a project's settings ask for."""

from __future__ import annotations

from pathlib import Path

from sqb.lake.lake import Lake
from sqb.project.config_values import CatalogConfig


def open_lake(catalog: CatalogConfig, cache: Path | None) -> Lake:
    """The lake of these settings; nothing is connected yet. ``cache`` is a disposable folder."""
    if catalog.type == "rest":
        from sqb.lake.rest_client import RestClient
        from sqb.lake.rest_lake import RestLake

        client = RestClient(catalog.name, catalog.uri, catalog.warehouse, catalog.properties)
        return RestLake(client, cache / "publish.mp" if cache is not None else None)
    from sqb.lake import stores
    from sqb.lake.sql_lake import SqlLake

    stores.use(catalog.warehouse, catalog.properties)
    return SqlLake(catalog.name, catalog.uri, catalog.warehouse)
