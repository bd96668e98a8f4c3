"""The till of the waffle shop: writes one more day of orders into the lake.

    python raw/next_day.py       one more day
    python raw/next_day.py 7     a week

It plays another team's program. It writes plain Iceberg tables with pyiceberg, starts no Spark and
knows nothing of sqb; that new rows are there, sqb sees from the tables themselves.
"""

from __future__ import annotations

import sys
from datetime import date, datetime, time, timedelta, timezone
from pathlib import Path
from random import Random

try:
    import pyarrow as pa
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.exceptions import NoSuchTableError
except ModuleNotFoundError as error:
    sys.exit(f"{error.name} is missing here: run this with the Python that sqb is installed in")

PROJECT = Path(__file__).resolve().parents[1]
FIRST_DAY = date(2026, 3, 2)
STORES = (1, 2)
WAFFLES, EXTRAS = (1, 2, 3, 4, 5), (6, 7, 8, 9, 10)
NAMES = ("Ada", "Ben", "Cleo", "Dora", "Emil", "Fay", "Gus", "Hana", "Ivo", "June", "Kai", "Lou")

CUSTOMERS = pa.schema(
    {
        "customer_id": pa.int64(),
        "name": pa.string(),
        "email": pa.string(),
        "signed_up_on": pa.date32(),
    }
)
ORDERS = pa.schema(
    {
        "order_id": pa.int64(),
        "store_id": pa.int32(),
        "customer_id": pa.int64(),
        "ordered_at": pa.timestamp("us", tz="UTC"),
        "status": pa.string(),
    }
)
ITEMS = pa.schema(
    {
        "order_id": pa.int64(),
        "line": pa.int32(),
        "item_id": pa.int32(),
        "quantity": pa.int32(),
    }
)


def orders_of(day: date) -> tuple[list[dict], list[dict]]:
    """The orders of a day and their items. The same day always gives the same rows."""
    dice = Random(day.toordinal())
    orders, items = [], []
    for store in STORES:
        for number in range(int(4 + 5 * dice.random())):
            order_id = int(f"{day:%y%m%d}{store}{number:02}")
            minute = int(8 * 60 + 9 * 60 * dice.random())
            chance = dice.random()
            orders.append(
                {
                    "order_id": order_id,
                    "store_id": store,
                    # not every guest has a card
                    "customer_id": int(1 + 12 * dice.random()) if dice.random() < 0.8 else None,
                    "ordered_at": datetime.combine(day, time(minute // 60, minute % 60)).replace(
                        tzinfo=timezone.utc
                    ),
                    "status": "test" if chance < 0.04 else "refunded" if chance < 0.1 else "paid",
                }
            )
            wanted = [WAFFLES[int(5 * dice.random())]]
            wanted += sorted(
                {EXTRAS[int(5 * dice.random())] for _ in range(int(3 * dice.random()))}
            )
            for line, item in enumerate(wanted, 1):
                quantity = int(1 + 2.2 * dice.random())
                items.append(
                    {"order_id": order_id, "line": line, "item_id": item, "quantity": quantity}
                )
    return orders, items


def customers() -> list[dict]:
    """The guests who have a loyalty card; they came before the first order."""
    return [
        {
            "customer_id": number,
            "name": name,
            "email": f"{name}@example.com",
            "signed_up_on": date(2026, 1, 5) + timedelta(days=5 * number),
        }
        for number, name in enumerate(NAMES, 1)
    ]


def write(catalog: SqlCatalog, name: str, schema: pa.Schema, rows: list[dict]) -> None:
    """Add rows to a table, in one commit; the first time the table is made."""
    catalog.create_namespace_if_not_exists(name.split(".", maxsplit=1)[0])
    table = catalog.create_table_if_not_exists(name, schema=schema)
    table.append(pa.Table.from_pylist(rows, schema=schema))


def next_day(catalog: SqlCatalog) -> date:
    """The day after the last one that the till wrote."""
    try:
        moments = catalog.load_table("till.orders").scan(selected_fields=("ordered_at",))
    except NoSuchTableError:
        return FIRST_DAY
    return max(moments.to_arrow()["ordered_at"].to_pylist()).date() + timedelta(days=1)


def deliver(days: int) -> str:
    """Write the next days, all in one commit per table; what was written, in a sentence."""
    lake = PROJECT / "lake"
    lake.mkdir(exist_ok=True)
    lake = lake.resolve()
    catalog = SqlCatalog("lake", uri=f"sqlite:///{lake / 'catalog.db'}", warehouse=str(lake))
    if not catalog.table_exists("crm.customers"):
        write(catalog, "crm.customers", CUSTOMERS, customers())
    first = next_day(catalog)
    orders: list[dict] = []
    items: list[dict] = []
    for number in range(days):
        more_orders, more_items = orders_of(first + timedelta(days=number))
        orders += more_orders
        items += more_items
    write(catalog, "till.order_items", ITEMS, items)
    write(catalog, "till.orders", ORDERS, orders)
    last = first + timedelta(days=days - 1)
    when = f"{first}" if days == 1 else f"{first} to {last}"
    return f"the till wrote {len(orders)} orders with {len(items)} items of {when}"


if __name__ == "__main__":
    print(deliver(int(sys.argv[1]) if len(sys.argv) > 1 else 1))
