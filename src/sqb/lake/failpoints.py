"""Places where a test can kill the process, to prove that a crash there leaves the lake whole.

``SQB_FAILPOINT=publish:5a sqb build`` dies by SIGKILL, without any clean-up, the first time that
point is reached. The variable unset, a point costs one dictionary look-up. Not a feature for
users.
"""

from __future__ import annotations

import os
import signal

#: The points of the publish protocol, in order.
POINTS: dict[str, str] = {
    "publish:1": "the target's head is remembered",
    "publish:2": "the alias is registered",
    "publish:3": "the staged data is written",
    "publish:4": "the checks on the staged data are done",
    "publish:5a": "the metadata file to publish is written, the catalog does not name it yet",
    "publish:5b": "the catalog names the published metadata, the alias is gone",
    "publish:6": "the clean-up is done",
    "publish:7": "the state rows are appended",
}

#: Points of a refresh by rows, on the way to ``publish:3``.
ROW_POINTS: dict[str, str] = {
    "rows:1": "the rows that go are gone from what is staged, those that come are not there yet",
}

#: The points of upkeep.
UPKEEP_POINTS: dict[str, str] = {
    "expire:1": "the catalog names metadata without the expired snapshots, their files are there",
}


def reached(point: str) -> None:
    """Die here if ``SQB_FAILPOINT`` names this point."""
    if os.environ.get("SQB_FAILPOINT") == point:
        os.kill(os.getpid(), signal.SIGKILL)
