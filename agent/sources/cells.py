"""Cells of nvidia-smi tables: figures with units, and the many ways to say "unknown"."""

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Final

from core.clock import iso
from core.plausible import plausible, refusal
from core.units import Unit, per_base

UNKNOWN_WORDS: Final = frozenset(
    {"", "-", "n/a", "na", "nan", "none", "err!", "[n/a]", "unknown error", "not supported"}
)
SMI_UNITS: Final[Mapping[Unit, str]] = {
    Unit.RATIO: "%",
    Unit.BYTE: "mib",
    Unit.WATT: "w",
    Unit.HERTZ: "mhz",
    Unit.CELSIUS: "c",
    Unit.BYTE_PER_SECOND: "mb/s",
}
"""What nvidia-smi prints a quantity in when neither cell nor header says so (temperature never says)."""

_STAMP: Final = re.compile(r"(\d{4})[/-](\d\d)[/-](\d\d)[ T](\d\d):(\d\d)(?::(\d\d(?:\.\d+)?))?$")


class CellError(ValueError):
    """A cell that is neither a figure nor a known way to say "unknown"; the text says why."""


def factor_of(unit: str) -> float:
    """Factor to the base unit. Raises ``CellError``: a guess would be a wrong number."""
    try:
        return per_base(unit)
    except KeyError:
        raise CellError(f"unit {unit.strip()!r} is not known") from None


def is_unknown(cell: str) -> bool:
    """Whether a cell says that there is no value: ``[N/A]``, ``[Unknown Error]``, ``N/A``, ``-`` or nothing."""
    return cell.startswith("[") or cell.lower() in UNKNOWN_WORDS


def figure_of(cell: str, factor: float) -> float | None:
    """Base-unit figure of a stripped cell; its own unit wins over ``factor``. None: unknown.

    Raises ``CellError`` when it is neither.
    """
    number, _, unit = cell.partition(" ")
    try:
        figure = float(number)
    except ValueError:
        if is_unknown(cell):
            return None
        raise CellError(f"{cell!r} is not a figure") from None
    if figure - figure != 0:  # NaN, infinity
        return None
    if unit:
        factor = factor_of(unit)
    return figure * factor


def value_of(cell: str, name: str, unit: str) -> float | None:
    """Figure of a cell as the reading or fact ``name``; its own unit wins over that of its column. None: unknown.

    Raises ``CellError``, also when it cannot be true.
    """
    if name.endswith("_flags"):
        figure = mask_of(cell)
    elif " " in cell or is_unknown(cell):
        figure = figure_of(cell, 1.0)
    else:
        figure = figure_of(cell, factor_of(unit))
    if figure is None:
        return None
    value = plausible(name, figure)
    if value is None:
        raise CellError(refusal(name, cell))
    return value


def reader_of(name: str, unit: str) -> Callable[[str], float | None]:
    """``value_of`` for one column; the same cells come again and again, so the last few thousand are remembered."""
    return lru_cache(4096)(partial(value_of, name=name, unit=unit))


def mask_of(cell: str) -> float | None:
    """A bit mask such as ``0x0000000000000004``; None: unknown. Raises ``CellError``."""
    if is_unknown(cell):
        return None
    try:
        return float(int(cell, 0))
    except ValueError:
        raise CellError(f"{cell!r} is not a bit mask") from None


def no_later(ts_ms: int, latest_ms: int | None) -> int:
    """The instant. Raises ``CellError`` when it is later than ``latest_ms``."""
    if latest_ms is not None and ts_ms > latest_ms:
        raise CellError(f"{iso(ts_ms)} is in the future: check the clock or the time zone")
    return ts_ms


class Stamps:
    """Local times such as ``2026/07/14 09:00:27.792`` → epoch milliseconds; remembers the last minute."""

    def __init__(self, utc_offset_ms: int = 0) -> None:
        self._offset = utc_offset_ms
        self._minute = ""
        self._minute_ms = 0

    def ts_ms(self, cell: str) -> int:
        """Epoch milliseconds. Raises ``CellError``."""
        if cell[:16] == self._minute and cell[16:17] == ":":
            try:
                return self._minute_ms + round(float(cell[17:]) * 1000)
            except ValueError:
                raise CellError(f"time {cell!r} cannot be read") from None
        found = _STAMP.match(cell)
        if found is None:
            raise CellError(f"time {cell!r} cannot be read")
        year, month, day, hour, minute = (int(part) for part in found.groups()[:5])
        try:
            at = datetime(year, month, day, hour, minute, tzinfo=UTC)
        except ValueError as error:
            raise CellError(f"time {cell!r} cannot be read ({error})") from None
        self._minute, self._minute_ms = cell[:16], round(at.timestamp() * 1000) - self._offset
        return self._minute_ms + round(float(found[6] or 0) * 1000)
