"""What changed in the state of a card between two looks, as events."""

from collections.abc import Iterator, Mapping
from typing import Final

Facts = Mapping[str, float | str]

_GROWING: Final = {
    "ecc_uncorrected_count": ("ecc", "Uncorrected ECC errors since the driver was loaded"),
    "row_remap_uncorrected_count": ("row_remap", "Rows remapped after uncorrected errors"),
    "row_remap_corrected_count": ("row_remap", "Rows remapped after corrected errors"),
    "retired_page_count": ("retired_pages", "Retired memory pages"),
}
"""Counts whose growth is news. Corrected ECC errors are not: they are what ECC is for."""
_SET: Final = {
    "row_remap_pending": ("row_remap", "A row remapping waits for a reset of the GPU."),
    "row_remap_failed": ("row_remap", "A row remapping failed: the card should be replaced."),
    "retired_pages_pending": ("retired_pages", "A page retirement waits for a reset of the GPU."),
}
HEALTHY: Final = "none"
"""No recovery action is asked for."""
_CHANGING: Final = {
    "persistence_mode": ("mode", "Persistence mode"),
    "compute_mode": ("mode", "Compute mode"),
    "mig_mode": ("mode", "MIG mode"),
    "ecc_mode": ("mode", "ECC mode"),
    "pcie_link_width": ("pcie_link", "PCIe link width"),
    "power_limit_w": ("power_limit", "Power limit in watts"),
}
"""Not the PCIe generation: it drops whenever a card idles."""


def changes(old: Facts | None, new: Facts) -> Iterator[tuple[str, str]]:
    """Kind and sentence of each event; without an old look only what is wrong now is told."""
    before: Facts = {} if old is None else old
    for name, (kind, text) in _GROWING.items():
        now = new.get(name)
        was = before.get(name, 0.0 if old is None else None)
        if isinstance(now, float | int) and isinstance(was, float | int) and now > was:
            yield kind, f"{text}: {now:.0f}."
    for name, (kind, text) in _SET.items():
        if new.get(name) and not before.get(name):
            yield kind, text
    action = new.get("recovery_action")
    if action is not None and action != before.get("recovery_action", HEALTHY):
        yield "recovery_action", f"Recovery action that the driver asks for: {action}."
    if old is None:
        return
    for name, (kind, text) in _CHANGING.items():
        if name in old and name in new and old[name] != new[name]:
            yield kind, f"{text} changed from {_shown(old[name])} to {_shown(new[name])}."


def _shown(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"
