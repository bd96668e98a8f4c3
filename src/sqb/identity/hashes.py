"""Who a node of a dbt project is, in each of the senses that ``[dbt] identity`` can have."""

from __future__ import annotations

import msgspec


class Hashes(msgspec.Struct, frozen=True, array_like=True):
    """Who a node is, in the three senses of ``[dbt] identity``.

    ``checksum`` is dbt's own, ``inlined`` stands for those of the ephemeral models in its text (or
    is empty); ``normalised`` and ``full`` are hashes of the node itself with all that dbt's
    checksum misses; ``versions`` are the three, each composed with those of everything above.
    ``parts`` has a short hash of each thing beside the text, so that a cause can be named. ``body``
    is the hash of the normalised text alone. Tests have no versions and no parts.
    """

    checksum: str
    inlined: str = ""
    normalised: str = ""
    full: str = ""
    versions: tuple[str, str, str] = ("", "", "")
    parts: dict[str, str] = {}
    body: str = ""

    def definition(self, mode: str) -> tuple[str, str]:
        """The text and what counts beside it, as one sense of identity has them.

        >>> Hashes("c", inlined="i", normalised="n", full="f", body="b").definition("full")
        ('c', 'f')
        """
        if mode == "checksum":
            return self.checksum, self.inlined
        if mode == "normalised":
            # tests have no body of their own
            return self.body or self.normalised, self.normalised
        return self.checksum, self.full


#: The order of ``Hashes.versions``.
MODES = ("checksum", "normalised", "full")
