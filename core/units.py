"""Units and the conversions from what drivers and exporters print to base units.

Everything inside gpuwise is in base units (W, J, bytes, Hz, °C, seconds, ratios 0–1, UTC epoch
milliseconds). Raw units are converted where they are read, once, with this module.
"""

from enum import StrEnum
from typing import Final

SECOND_MS: Final = 1_000
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 86_400_000

J_PER_KWH: Final = 3_600_000.0
HOURS_PER_MONTH: Final = 730.0
"""8760/12; some papers use 720 (cost-model 2)."""
HOURS_PER_YEAR: Final = 8760.0
MIB: Final = 1 << 20
GIB: Final = 1 << 30


class Unit(StrEnum):
    """A base unit. The value is the suffix that a metric's name must carry."""

    RATIO = "ratio"
    WATT = "w"
    JOULE = "j"
    BYTE = "bytes"
    BYTE_PER_SECOND = "bytes_per_s"
    HERTZ = "hz"
    CELSIUS = "c"
    SECOND = "s"
    TOKEN = "tokens"  # noqa: S105 - a unit, not a secret
    REQUEST = "requests"
    COUNT = "count"
    FLAGS = "flags"
    INDEX = "index"
    """A place in a list, such as performance state 0 to 15."""


TO_BASE: Final[dict[str, float]] = {
    "%": 0.01,
    "w": 1.0,
    "mw": 1e-3,
    "kw": 1e3,
    "j": 1.0,
    "mj": 1e-3,
    "mib": float(MIB),
    "mb": float(MIB),
    "kib": 1024.0,
    "b": 1.0,
    "mhz": 1e6,
    "hz": 1.0,
    "c": 1.0,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "mb/s": 1e6,
    "kb/s": 1e3,
    "mib/s": float(MIB),
    "": 1.0,
}
"""Raw unit text (lower case, as nvidia-smi and dmon print it) → factor to the base unit.

``mJ`` means millijoule here (NVML's energy counter): nvidia-smi never prints megajoules.
dmon writes ``MB`` for its memory columns and means MiB; ``kW`` is what people's own scripts write. dmon's ``MB/s`` is decimal, as in NVML's documentation of the PCIe throughput call.
"""


def per_base(unit_text: str) -> float:
    """Factor that turns a figure printed in ``unit_text`` into its base unit.

    Raises ``KeyError`` with the text when the unit is not known: a guess would be a wrong number.
    """
    return TO_BASE[unit_text.strip().lower()]
