"""Variables as they are written on a command line."""

from __future__ import annotations

from sqb.errors import SqbError


def parse_vars(text: str | None) -> dict[str, object]:
    """The variables of ``--vars``: a JSON object, or a YAML mapping.

    >>> parse_vars('{"day": 3}')
    {'day': 3}
    """
    if not text or not text.strip():
        return {}
    import msgspec

    value: object
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError:
        import yaml

        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError:
            value = None
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise SqbError(
            "C008",
            "--vars is neither a JSON object nor a YAML mapping",
            help="for example --vars '{\"day\": \"2026-01-31\"}' or --vars 'day: 2026-01-31'",
        )
    return value
