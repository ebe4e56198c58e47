"""Evidence for people: names without underscores, figures with the unit that their name carries."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from api import formats
from api.pages.fact_names import FACT_NAMES
from api.text import with_names
from core.clock import to_ms

WHEN: Final = re.compile(r"_(now|then|before|after|p\d+|mean|median|max|min|limit|total|until_ended)$")
"""What may stand after the unit: ``itl_s_now``, ``power_w_p95``."""

UNITS: Final[tuple[tuple[str, Callable[[Any], str]], ...]] = (
    ("usd_per_million_tokens", lambda v: f"{formats.money(v)} / 1M tokens"),
    ("usd_per_gpu_hour", formats.money_rate),
    ("usd_per_gpu_h", formats.money_rate),
    ("usd_per_hour", formats.money_rate),
    ("usd_per_kwh", lambda v: f"${formats.figure(v, 3)}/kWh"),
    ("usd_month", lambda v: f"{formats.money(v)} / month"),
    ("usd", formats.money),
    ("gpu_h_month", lambda v: f"{formats.gpu_hours(v)} / month"),
    ("gpu_h", formats.gpu_hours),
    ("tokens_per_s", lambda v: f"{formats.short(v)}{formats.NBSP}tokens/s"),
    ("tokens_per_j", lambda v: f"{formats.short(v)}{formats.NBSP}tokens/J"),
    ("bytes_per_s", lambda v: f"{formats.short(v / 1e9)}{formats.NBSP}GB/s"),
    ("kwh_month", lambda v: f"{formats.kwh(v)} / month"),
    ("kwh", formats.kwh),
    ("ratio", formats.percent),
    ("bytes", formats.gib),
    ("hz", formats.clock_mhz),
    ("ms", lambda v: f"{formats.short(v)}{formats.NBSP}ms"),
    ("h_week", lambda v: f"{formats.short(v)} of 168{formats.NBSP}h"),
    ("h", lambda v: formats.duration(v * 3600)),
    ("s", lambda v: formats.milliseconds(v) if abs(v) < 1 else formats.duration(v)),
    ("w", formats.watts),
    ("j", lambda v: f"{formats.short(v)}{formats.NBSP}J"),
    ("c", lambda v: f"{formats.short(v)}{formats.NBSP}°C"),
)
"""Units by the end of a name, longest first."""
ACRONYMS: Final = {
    word.lower(): word
    for word in (
        "GPU",
        "GPUs",
        "KV",
        "SLO",
        "UTC",
        "SM",
        "MBU",
        "MFU",
        "HBM",
        "PCIe",
        "CPU",
        "USD",
        "ITL",
        "TTFT",
        "ENOVA",
    )
}


def split(name: str) -> tuple[str, Callable[[Any], str] | None]:
    """A name for people and how its figures read: ``kv_used_ratio_p95`` gives ``kv used p95`` and percent."""
    when = WHEN.search(name)
    stem = name[: when.start()] if when else name
    for unit, text in UNITS:
        if stem == unit or stem.endswith(f"_{unit}"):
            keep = stem.removesuffix(unit).rstrip("_")
            # Units that are the whole name, and rates, are their own best word.
            word = keep or stem
            return FACT_NAMES.get(name) or _words(word + (when.group() if when else "")), text
    return FACT_NAMES.get(name) or _words(name), None


def _words(name: str) -> str:
    return " ".join(ACRONYMS.get(word, word) for word in name.split("_")).strip()


def text_of(name: str, value: Any) -> str:
    """A value with the unit its name carries."""
    if value is None:
        return formats.UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{split(str(key))[0]} {text_of(str(key), item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(text_of(name, item) for item in value)
    if not isinstance(value, int | float):
        return str(value)
    print_it = split(name)[1]
    return formats.short(value) if print_it is None else print_it(value)


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure: its name, its text, and the parts of a long list, which are folded."""

    name: str
    text: str
    parts: tuple[str, ...] = ()


MOST_PARTS: Final = 4
"""Longer lists are folded."""


def facts_of(evidence: Mapping[str, Any], names: Mapping[str, str] | None = None) -> tuple[Fact, ...]:
    """Evidence as facts; its window becomes one span of time, GPUs of ``names`` are called so instead of by UUID."""
    found = []
    window = window_of(evidence)
    if window is not None:
        found.append(Fact("window", window))
    for name, value in evidence.items():
        if window is not None and name in {"window_from", "window_to"}:
            continue
        found.append(_fact(name, value, names or {}))
    return tuple(_told_apart(found, evidence))


def _told_apart(facts: Sequence[Fact], evidence: Mapping[str, Any]) -> Iterator[Fact]:
    """Of a time and a share of one name (``parked_h``, ``parked_ratio``) the share says what it is."""
    shares = {split(name)[0] for name in evidence if name.endswith("_ratio")}
    names = [fact.name for fact in facts]
    for fact in facts:
        is_share = fact.name in shares and names.count(fact.name) > 1 and fact.text.endswith("%")
        yield replace(fact, name=f"{fact.name} share") if is_share else fact


def _fact(name: str, value: Any, names: Mapping[str, str]) -> Fact:
    title = split(name)[0]
    if isinstance(value, list | tuple):
        parts = [with_names(text_of(name, item), names) for item in value]
    elif isinstance(value, Mapping):
        parts = [
            with_names(f"{split(str(key))[0]} {text_of(str(key), item)}", names)
            for key, item in value.items()
        ]
    else:
        return Fact(title, with_names(text_of(name, value), names))
    if len(parts) <= MOST_PARTS:
        return Fact(title, ", ".join(parts) or "none")
    return Fact(title, f"{len(parts)} of them", tuple(parts))


def window_of(evidence: Mapping[str, Any]) -> str | None:
    """The window for people; None when it cannot be read."""
    from datetime import datetime

    try:
        start, end = (
            to_ms(datetime.fromisoformat(str(evidence[key]))) for key in ("window_from", "window_to")
        )
    except (KeyError, ValueError):
        return None
    return formats.span(start, end) if start < end else None
