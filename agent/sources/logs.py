"""What kind of log a file is, told from its content, and which files of a folder belong to one run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from agent.sources.dmon import Table, table_of, with_units
from agent.sources.exposition import LineError, split_line
from agent.sources.smi import ABSOLUTE, RELATIVE, UUID, Header, header_of
from agent.sources.text import TextFile
from core.errors import GpuwiseError

SMI: Final = "nvidia-smi"
DMON: Final = "dmon"
EXPOSITION: Final = "openmetrics"

LOOKED_LINES: Final = 20_000
"""A saved terminal session may have a few thousand lines of other output before its first table."""
NEIGHBOUR_LINES: Final = 200
NEIGHBOURS: Final = 500
"""Files of a folder looked at when the other log of a run is wanted."""
HEAD_ROWS: Final = 64


@dataclass(slots=True)
class Head:
    """The beginning of a file.

    Attributes:
        path: the file.
        kind: ``SMI``, ``DMON``, ``EXPOSITION``, or None: none of them.
        times: what the time column holds: ``date``, ``clock``, ``relative``, ``none``.
        first_times: cells of the time column of the first rows, as text.
        uuids: of the first rows. index_of: UUID by NVML index, where the log has both.
        indexes: GPU indexes of the first rows of a dmon log. time_at: place of the time column.
    """

    path: Path
    kind: str | None = None
    times: str = "none"
    first_times: tuple[str, ...] = ()
    uuids: set[str] = field(default_factory=set)
    index_of: dict[int, str] = field(default_factory=dict)
    indexes: set[int] = field(default_factory=set)
    time_at: int | None = None

    def same_run(self, other: "Head") -> bool:
        """Both logs were written by one sampler: the same relative times to the last digit."""
        both = list(zip(self.first_times, other.first_times, strict=False))[:HEAD_ROWS]
        return len(both) >= 2 and self.times == other.times == "relative" and all(a == b for a, b in both)


def look(path: Path, lines: int = LOOKED_LINES) -> Head:
    """Look at the beginning of a file. Raises ``GpuwiseError`` when it cannot be read or is not text."""
    head = Head(path)
    rows = iter(TextFile(path))
    table: Table | None = None
    for line in islice(rows, lines):
        if not line or line.isspace():
            continue
        if table is not None:
            completed = with_units(table, line)
            return _dmon(head, completed or table, [] if completed else [line], rows)
        smi = header_of(line)
        if smi is not None and smi.kind == "gpu":
            return _smi(head, smi, rows)
        table = table_of(line)
        if table is None and smi is None and head.kind is None and _is_sample(line):
            head.kind = EXPOSITION
            return head
    if table is not None:
        return _dmon(head, table, [], rows)
    return head


def _is_sample(line: str) -> bool:
    """Exposition text: ``# TYPE name kind``, or a name, labels in braces, a figure."""
    if line.startswith(("# TYPE ", "# HELP ")):
        return True
    try:
        series, value, _stamp = split_line(line)
        float(value)
    except (LineError, ValueError):
        return False
    return "{" in series and series.endswith("}")


def _smi(head: Head, header: Header, rows: Iterable[str]) -> Head:
    fields = header.fields
    head.kind = SMI
    head.times = "relative" if header.is_relative else "date" if ABSOLUTE in fields else "none"
    time = fields.index(RELATIVE if header.is_relative else ABSOLUTE) if head.times != "none" else None
    head.time_at = time
    times = []
    for line in islice(rows, HEAD_ROWS):
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) != len(fields):
            continue
        if time is not None:
            times.append(cells[time])
        if UUID in fields:
            uuid = cells[fields.index(UUID)]
            head.uuids.add(uuid)
            if "index" in fields and cells[fields.index("index")].isdecimal():
                head.index_of[int(cells[fields.index("index")])] = uuid
    head.first_times = tuple(times)
    return head


def _dmon(head: Head, table: Table, first: list[str], rows: Iterable[str]) -> Head:
    head.kind, head.times = DMON, table.times
    head.time_at = table.fields.index("time") if "time" in table.fields else None
    times = []
    for line in [*first, *islice(rows, HEAD_ROWS)]:
        cells = line.split(",") if table.commas else line.split()
        if len(cells) != len(table.fields) or line.startswith("#"):
            continue
        index = cells[table.fields.index("gpu")].strip()
        if index.isdecimal():
            head.indexes.add(int(index))
        if head.time_at is not None:
            times.append(cells[head.time_at].strip())
    head.first_times = tuple(times)
    return head


class Folders:
    """The logs given, and those that lie beside them; each file is looked at once."""

    def __init__(self, given: Sequence[Head]) -> None:
        self._given = list(given)
        self._looked: dict[Path, Head | None] = {}

    def beside(self, head: Head, kind: str) -> list[Head]:
        """Logs of a kind in the folder of ``head``: those given first, then what else lies there."""
        folder = head.path.parent
        found = [one for one in self._given if one.kind == kind and one.path.parent == folder]
        given = {one.path for one in self._given}
        try:
            others = sorted(path for path in folder.iterdir() if path not in given and path.is_file())
        except OSError:
            return found
        looked = (self._look(path) for path in others[:NEIGHBOURS])
        return found + [one for one in looked if one is not None and one.kind == kind]

    def partner(self, head: Head) -> Head | None:
        """The other log of the same run (dmon of a query log, query log of a dmon log), told by equal times."""
        if head.times != "relative":
            return None
        wanted = DMON if head.kind == SMI else SMI
        return next((one for one in self.beside(head, wanted) if head.same_run(one)), None)

    def _look(self, path: Path) -> Head | None:
        if path not in self._looked:
            try:
                self._looked[path] = look(path, NEIGHBOUR_LINES)
            except GpuwiseError:
                self._looked[path] = None
        return self._looked[path]


def last_relative_s(head: Head) -> float | None:
    """Time of the last row of a log with relative times, seconds; None when no row has one."""
    assert head.time_at is not None
    last = None
    for line in TextFile(head.path):
        cells = line.split(",", head.time_at + 1)
        try:
            last = float(cells[head.time_at])
        except (ValueError, IndexError):
            continue
    return last
