"""Macros: functions that write SQL. `@euros("x")` in a query is replaced by what they return."""


def euros(cents: str) -> str:
    """Cents as an amount of money."""
    return f"CAST({cents} / 100 AS DECIMAL(12, 2))"


def part_of_day(moment: str) -> str:
    """The part of the day in which something happened."""
    return (
        f"CASE WHEN hour({moment}) < 11 THEN 'morning' "
        f"WHEN hour({moment}) < 15 THEN 'lunch' ELSE 'afternoon' END"
    )
