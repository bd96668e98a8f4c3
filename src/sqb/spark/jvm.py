"""Which options a driver's JVM gets, as a pure function of the work ahead.

A small build is over before the optimising compiler pays off, so it gets the quick one and the
plainest collector. Big or unknown work gets Spark's defaults.
"""

from __future__ import annotations

import re
from pathlib import Path

_GC = re.compile(r"-XX:[+-]Use\w*GC\b")
_JIT = re.compile(r"-XX:[+-]?Tiered|-XX:CompileThreshold|-Xint\b|-Xcomp\b|JVMCI")
_ARCHIVE = re.compile(r"-Xshare|SharedArchiveFile|ArchiveClassesAtExit|SharedClassListFile")


def java_options(
    own: str, *, input_bytes: int | None, small_bytes: int, archive: Path | None
) -> str:
    """The options of ``spark.driver.extraJavaOptions``: the user's ``own`` are kept and win.

    >>> java_options("-Dx=1", input_bytes=10, small_bytes=100, archive=None)
    '-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dx=1'
    """
    chosen: list[str] = []
    if input_bytes is not None and input_bytes <= small_bytes:
        if not _JIT.search(own):
            chosen.append("-XX:TieredStopAtLevel=1")
        if not _GC.search(own):
            # two collectors on one command line keep a JVM from starting
            chosen.append("-XX:+UseSerialGC")
    # Spark splits these options at blanks
    if archive is not None and not _ARCHIVE.search(own) and " " not in str(archive):
        chosen += [f"-XX:SharedArchiveFile={archive}", "-Xshare:auto"]
    return " ".join([*chosen, *([own] if own else [])])
