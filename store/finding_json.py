"""A finding as JSON text and back, without loss: enumerations, ranges, tuples, decimals and times stay what they are."""

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from math import isfinite
from typing import Any, Final

from core.finding import Action, Effort, Finding, Grade, Range, Risk, Saving, Stake, Subject

_LEDGERS: Final = ("cash_usd_month", "capacity_gpu_h_month", "energy_kwh_month")
_PLAIN: Final = (
    "rule_id",
    "cause",
    "title",
    "because",
    "state",
    "confidence",
    "wrong_when",
    "not_claimed",
    "no_figure",
    "stage",
)
_TAG: Final = "$"
"""Key that marks a wrapped value; an evidence key of that name is refused."""

EVIDENCE: Final = ',"evidence":'
"""Where a finding's head ends. Evidence and chart are written last, and a quotation mark inside a text is always escaped:
the first bare key is theirs."""


def to_text(finding: Finding) -> str:
    """JSON text of a finding.

    Raises:
        TypeError: its evidence or chart holds something that would not come back the same.
    """
    return json.dumps(
        {name: getattr(finding, name) for name in _PLAIN}
        | {
            "subject": [finding.subject.kind, finding.subject.id, finding.subject.label],
            "grade": finding.grade.value,
            "effort": finding.effort.value,
            "risk": finding.risk.value,
            "saving": {name: _range(getattr(finding.saving, name)) for name in _LEDGERS},
            "actions": [[action.text, action.command] for action in finding.actions],
            "gpu_uuids": list(finding.gpu_uuids),
            "at_stake": None
            if finding.at_stake is None
            else [finding.at_stake.gpus, finding.at_stake.usd_per_hour],
            "evidence": _wrap(finding.evidence),
            "chart": _wrap(finding.chart),
        },
        ensure_ascii=False,
        allow_nan=False,
        separators=(",", ":"),
    )


def from_text(text: str) -> Finding:
    """The finding that ``to_text`` wrote."""
    raw: dict[str, Any] = json.loads(text)
    stake = raw.get("at_stake")  # findings that were kept before there was one have none
    return Finding(
        subject=Subject(*raw["subject"]),
        grade=Grade(raw["grade"]),
        effort=Effort(raw["effort"]),
        risk=Risk(raw["risk"]),
        saving=Saving(
            **{
                name: None if raw["saving"][name] is None else Range(*raw["saving"][name])
                for name in _LEDGERS
            }
        ),
        actions=tuple(Action(*action) for action in raw["actions"]),
        gpu_uuids=tuple(raw["gpu_uuids"]),
        at_stake=None if stake is None else Stake(*stake),
        evidence=_unwrap(raw["evidence"]),
        chart=_unwrap(raw["chart"]),
        **{name: raw[name] for name in _PLAIN},
    )


def brief_from_text(text: str) -> Finding:
    """The finding without its evidence and chart, most of the text: for tables that print its title."""
    return from_head(text[: text.index(EVIDENCE)])


@lru_cache(maxsize=4_096)
def from_head(head: str) -> Finding:
    """The same of text that ends at ``EVIDENCE``."""
    # Kept: findings change when the rules run, tables are looked at in between.
    return from_text(f'{head}{EVIDENCE}{{}},"chart":{{}}}}')


def _range(value: Range | None) -> list[float] | None:
    return None if value is None else [value.p10, value.p50, value.p90]


def _wrap(value: Any) -> Any:
    if isinstance(value, Mapping):
        if any(not isinstance(key, str) or key == _TAG for key in value):
            raise TypeError(
                f"a finding's mapping needs text keys other than {_TAG!r}: {sorted(map(str, value))}"
            )
        return {key: _wrap(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return {_TAG: "tuple", "v": [_wrap(item) for item in value]}
    if isinstance(value, list):
        return [_wrap(item) for item in value]
    if isinstance(value, Decimal):
        return {_TAG: "decimal", "v": str(value)}
    if isinstance(value, datetime):
        return {_TAG: "datetime", "v": value.isoformat()}
    if value is None or isinstance(value, bool | int | str):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, float) and isfinite(value):
        return value
    raise TypeError(
        f"a finding cannot keep {value!r}: use numbers, text, lists, mappings or None for unknown"
    )


def _unwrap(value: Any) -> Any:
    if isinstance(value, list):
        return [_unwrap(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(_TAG)
    if kind is None:
        return {key: _unwrap(item) for key, item in value.items()}
    if kind == "tuple":
        return tuple(_unwrap(item) for item in value["v"])
    return Decimal(value["v"]) if kind == "decimal" else datetime.fromisoformat(value["v"])
