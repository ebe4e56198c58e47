"""How figures read on a page and in mail: one place for rounding, units and the unknown.

Every function takes None for unknown and prints ``UNKNOWN`` for it, never 0. A no-break space stands between
figure and unit so that a line never ends between them.
"""

from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache
from typing import Final, Protocol

from core.clock import from_ms
from core.units import GIB, HOUR_MS, MIB

UNKNOWN: Final = "–"
NBSP: Final = "\u00a0"
ENOUGH_H: Final = 14 * 24
"""Two weeks: below that one odd weekend weighs in."""
SPAN_OF_DAYS_MS: Final = 36 * HOUR_MS
"""A window so long is told by its days."""

Number = float | int | Decimal


class Spread(Protocol):
    """A figure with its uncertainty, in dollars or any other unit."""

    @property
    def p10(self) -> Number:
        """Nine in ten outcomes are above."""

    @property
    def p90(self) -> Number:
        """Nine in ten outcomes are below."""


@lru_cache(maxsize=16_384, typed=True)
def figure(value: Number | None, places: int = 0) -> str:
    """A number with thousands separators and ``places`` decimals."""
    if value is None:
        return UNKNOWN
    quantum = Decimal(1).scaleb(-places)
    rounded = Decimal(str(value)).quantize(quantum, ROUND_HALF_UP)
    return f"{rounded + 0:,f}".replace("-", "−")


def _places(value: Number) -> int:
    """Decimals that keep about three significant digits."""
    size = abs(float(value))
    return 0 if size >= 100 or size == 0 else 1 if size >= 10 else 2


def short(value: Number | None) -> str:
    """A number with about three significant digits; whole numbers stay whole."""
    if value is None:
        return UNKNOWN
    return figure(value, 0 if float(value).is_integer() else _places(value))


def money(value: Number | None) -> str:
    """Dollars: whole above $100, cents below."""
    if value is None:
        return UNKNOWN
    sign = "−" if value < 0 else ""
    size = abs(Decimal(str(value)))
    if 0 < size < Decimal("0.005"):
        return f"{sign}under{NBSP}$0.01"
    return f"{sign}${figure(size, 0 if size >= 100 or size == 0 else 2)}"


def money_span(low: Number | None, high: Number | None) -> str:
    """From one sum to another; one figure where both read alike."""
    if low is None or high is None:
        return UNKNOWN
    first, last = money(low), money(high)
    return first if first == last else f"{first}–{last.removeprefix('$')}"


def money_axis(value: float) -> str:
    """Dollars on an axis: ``$1.5M``, ``$2k``, ``$1.5k``, ``$0.50``."""
    if value >= 1_000_000:
        return f"${value / 1_000_000:g}M"
    if value >= 1_000:
        return f"${value / 1000:g}k"
    return f"${value:g}" if value >= 1 or value == 0 else f"${value:.2f}"


def money_rate(value: Number | None) -> str:
    """Dollars an hour, with cents."""
    return UNKNOWN if value is None else f"${figure(value, 2)}/h"


def spread(value: Spread | None, kind: str) -> str:
    """p10–p90 of a saving: ``kind`` is ``cash``, ``capacity`` or ``energy``."""
    if value is None:
        return UNKNOWN
    if kind == "cash":
        return money_span(value.p10, value.p90)
    return f"{short(value.p10)}–{short(value.p90)}"


def gpu_hours(value: Number | None) -> str:
    """GPU-hours."""
    return UNKNOWN if value is None else f"{short(value)}{NBSP}GPU-h"


def percent(ratio: Number | None, places: int | None = None) -> str:
    """A ratio 0–1 as percent; near 0 and near 1 with a decimal, so that 99.97 % does not read 100 %."""
    if ratio is None:
        return UNKNOWN
    share: float = float(ratio) * 100
    if places is None:
        places = 1 if 0 < share < 3 or 97 < share < 100 else 0
    if 99.95 <= share < 100 and places == 1:
        return f"over{NBSP}99.9{NBSP}%"
    if 0 < share < 0.05 and places == 1:
        return f"under{NBSP}0.1{NBSP}%"
    return f"{figure(share, places)}{NBSP}%"


def change(now: Number | None, before: Number | None) -> str:
    """Change against an earlier figure in percent with its sign; unknown without one."""
    if now is None or before is None or before == 0:
        return UNKNOWN
    grown: float = float(now) / float(before) - 1
    if abs(grown) < 0.0005:
        return f"±0{NBSP}%"
    sign = "+" if grown >= 0 else "−"
    size = figure(abs(grown) * 100, 1 if abs(grown) < 0.1 else 0)
    return f"{sign}{size}{NBSP}%"


def watts(value: Number | None) -> str:
    """Power in watts, kilowatts from 10 kW."""
    if value is None:
        return UNKNOWN
    size = float(value)
    return f"{figure(size / 1000, 1)}{NBSP}kW" if abs(size) >= 10_000 else f"{figure(size)}{NBSP}W"


def kwh(value: Number | None) -> str:
    """Energy in kilowatt-hours."""
    return UNKNOWN if value is None else f"{short(value)}{NBSP}kWh"


def gib(value: Number | None) -> str:
    """Bytes as GiB."""
    if value is None:
        return UNKNOWN
    size = float(value) / GIB
    return f"{figure(size, 1 if 0 < size < 10 else 0)}{NBSP}GiB"


def size(value: Number | None) -> str:
    """Bytes as GiB, as MiB below one."""
    return gib(value) if value is None or float(value) >= GIB else mib(value)


def mib(value: Number | None) -> str:
    """Bytes as MiB, for programs."""
    return UNKNOWN if value is None else f"{short(float(value) / MIB)}{NBSP}MiB"


def clock_mhz(value: Number | None) -> str:
    """Hertz as MHz, as driver tools print it."""
    return UNKNOWN if value is None else f"{figure(float(value) / 1e6)}{NBSP}MHz"


def celsius(value: Number | None) -> str:
    """Temperature."""
    return UNKNOWN if value is None else f"{figure(value)}{NBSP}°C"


def traffic(value: Number | None) -> str:
    """Bytes a second as GB/s or MB/s, decimal, as links are rated."""
    if value is None:
        return UNKNOWN
    size = float(value)
    return f"{short(size / 1e9)}{NBSP}GB/s" if size >= 1e9 else f"{figure(size / 1e6)}{NBSP}MB/s"


def duration(seconds: Number | None) -> str:
    """Length of time in its largest fitting unit."""
    if seconds is None:
        return UNKNOWN
    s = float(seconds)
    if s < 90:
        return f"{figure(s)}{NBSP}s"
    if s < 90 * 60:
        return f"{figure(s / 60)}{NBSP}min"
    if s < 48 * 3600:
        return f"{figure(s / 3600, 1 if s < 10 * 3600 and s % 3600 else 0)}{NBSP}h"
    return f"{figure(s / 86400)}{NBSP}days"


def milliseconds(seconds: Number | None) -> str:
    """Seconds as milliseconds, for latencies."""
    return UNKNOWN if seconds is None else f"{short(float(seconds) * 1000)}{NBSP}ms"


@lru_cache(maxsize=4_096)
def day(ts_ms: int) -> str:
    """Day and month, UTC: ``3 Nov``."""
    at = from_ms(ts_ms)
    return f"{at.day} {at:%b}"


def day_year(ts_ms: int) -> str:
    """Day, month, year, UTC."""
    return f"{day(ts_ms)} {from_ms(ts_ms):%Y}"


@lru_cache(maxsize=4_096)
def minute(ts_ms: int) -> str:
    """Day, hour and minute, UTC."""
    return f"{day(ts_ms)} {from_ms(ts_ms):%H:%M}"


def days(from_ms_: int, to_ms_: int) -> str:
    """A window of days for people, UTC: ``14 Nov – 20 Nov``, or the one day it lies in."""
    first, last = day(from_ms_), day(to_ms_ - 1)
    return first if first == last else f"{first} – {last}"


def span(from_ms_: int, to_ms_: int) -> str:
    """A window for people: days when it is days long, minutes otherwise. ``to_ms_`` is exclusive."""
    if to_ms_ - from_ms_ >= SPAN_OF_DAYS_MS:
        return f"{day(from_ms_)} – {day_year(to_ms_ - 1)}"
    same_day = from_ms(from_ms_).date() == from_ms(to_ms_ - 1).date()
    end = f"{from_ms(to_ms_):%H:%M}" if same_day else minute(to_ms_)
    return f"{day_year(from_ms_)} {from_ms(from_ms_):%H:%M} – {end} UTC"


def pace(window_h: float) -> str:
    """What a month's figure from a window is: a projection, and of how much data."""
    data = f"{figure(window_h, 1)} h" if window_h < 48 else f"{figure(window_h / 24)} days"
    little = ", little to go by" if window_h < ENOUGH_H else ""
    return f"a month at the pace of this window ({data} of data{little})"
