"""What gpuwise.toml, the environment and flags set: each setting with its value, where it is from and what it means.

Secrets stay hidden: of them is told only whether they are set.
"""

import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, fields
from fnmatch import fnmatchcase
from typing import Any, Final

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError

from core.rule_settings import TABLES
from core.settings import Secret, Settings, origins

DEFAULT: Final = "default"
FLAG: Final = "command line"
HIDDEN: Final = "set, hidden"
NOTHING: Final = "not given"
_RANGE: Final = re.compile(r"(?P<first>[a-z_]+) … (?P<last>[a-z_]+)")


@dataclass(frozen=True, slots=True)
class Given:
    """A setting as it holds now."""

    key: str
    value: str
    origin: str
    meaning: str

    @property
    def is_set(self) -> bool:
        """Somebody set it."""
        return self.origin != DEFAULT


def rows(settings: Settings, environ: Mapping[str, str] | None = None) -> list[Given]:
    """Every setting in the order of its documentation; thresholds and exclusions have a page of their own."""
    told, said = origins(environ), meanings()
    return [
        Given(
            one.name,
            shown(one.name, getattr(settings, one.name)),
            _origin(one, settings, told),
            said[one.name],
        )
        for one in fields(Settings)
        if one.name not in TABLES
    ]


def shown(key: str, value: object) -> str:
    """A value for people, without what nobody else may know."""
    if isinstance(value, Secret):
        return HIDDEN if value else NOTHING
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ", ".join(str(one) for one in value) or "none"
    if key == "database_url":
        return without_password(str(value))
    return str(value)


def without_password(url: str) -> str:
    """The address of a database without password and options, in which passwords may stand too."""
    try:
        return make_url(url).set(query={}).render_as_string(hide_password=True)
    except ArgumentError:
        return HIDDEN


def meanings() -> dict[str, str]:
    """What each setting means, from the documentation of ``Settings``; "" for one that it leaves out."""
    names = [one.name for one in fields(Settings)]
    found = dict.fromkeys(names, "")
    text = (Settings.__doc__ or "").split("Attributes:")[1]
    # A line may speak of several: "raw_days: …. hour_days: …."
    heads = "|".join([*names, r"[a-z]+_\*"])
    sentences = re.compile(rf"(?<=[.;]) (?=(?:{heads}): )")
    entries = re.sub(r"\n {9,}", " ", text).strip().splitlines()
    for entry in entries:
        for part in sentences.split(entry.strip()):
            head, _, meaning = part.partition(": ")
            for name in _named(head, names):
                found[name] = meaning.strip().replace("``", "")
    return found


def _named(head: str, names: list[str]) -> list[str]:
    """Settings that a line speaks of: ``host, port``, ``smtp_*``, ``own_capex_usd … own_life_years``."""
    spread = _RANGE.fullmatch(head)
    if spread is not None:
        # "… " stands for all of that family, however many came after the last one that is named.
        return [name for name in names if name.startswith(spread["first"].partition("_")[0] + "_")]
    asked = [word.strip() for word in head.split(",")]
    return [name for name in names if any(fnmatchcase(name, word) for word in asked)]


def _origin(one: "Field[Any]", settings: Settings, told: Mapping[str, str]) -> str:
    if one.name in told:
        return told[one.name]
    default = one.default if one.default_factory is MISSING else one.default_factory()
    return DEFAULT if getattr(settings, one.name) == default else FLAG
