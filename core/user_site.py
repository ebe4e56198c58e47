"""A site profile as the user gives it: energy terms of a host, a cluster or everything. Standard library only."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

HIGHEST_PUE: Final = 3.0
HIGHEST_SHARE_RATIO: Final = 2.0
"""Bounds of the settings of the same names (``core.settings``)."""
HIGHEST_G_PER_KWH: Final = 2_000.0
"""As in the grid table; coal is about 1,000."""
FIGURES: Final = ("tariff", "pue", "host_share", "carbon", "pays_for_power")
"""What is resolved one by one."""


class Scope(StrEnum):
    """What a site profile is for, most specific first."""

    HOST = "host"
    CLUSTER = "cluster"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Profile:
    """Energy terms that the user gives for hosts; None: not said here.

    Attributes:
        id: of the row in the store. name: for people.
        scope_kind: a ``Scope``. scope_value: host or cluster; empty for ``all``.
        tariff: name of a ``Tariff``. pue: power usage effectiveness.
        host_share_ratio: the node's other power on top of GPU draw; where measured, what stands in on days without.
        host_share_measured: measure it where the host's power is known (``core.host_share``).
        host_rest_ratio: what no counter of the host sees (fans, network, drives, supply losses), on top of what is measured.
        grid_code: code of the grid table or a cloud region. carbon_g_per_kwh: the user's own figure; wins over the code.
        pays_for_power: power is a bill of its own, so that energy is added to cost.
        valid_from_ms, valid_to_ms: in force from (inclusive) to (exclusive; None: still).
        note: the user's own words.
    """

    id: int
    name: str
    scope_kind: str
    scope_value: str = ""
    tariff: str | None = None
    pue: float | None = None
    host_share_ratio: float | None = None
    host_share_measured: bool = False
    host_rest_ratio: float | None = None
    grid_code: str | None = None
    carbon_g_per_kwh: float | None = None
    pays_for_power: bool | None = None
    valid_from_ms: int = 0
    valid_to_ms: int | None = None
    note: str = ""

    def __post_init__(self) -> None:
        """Refuse a profile that could not be applied. Raises ``ValueError`` with field, value and what to do."""
        if not self.name.strip() or self.name != self.name.strip():
            raise ValueError(f"site name is {self.name!r}: give a name, without spaces around it")
        if self.scope_kind not in tuple(Scope):
            raise ValueError(
                f"site {self.name!r}: scope_kind is {self.scope_kind!r}: use one of {', '.join(Scope)}"
            )
        if (self.scope_kind == Scope.ALL) == bool(self.scope_value):
            raise ValueError(
                f"site {self.name!r}: scope_value is {self.scope_value!r}: name the host or cluster it is for, and nothing for all"
            )
        self._within("pue", self.pue, 1.0, HIGHEST_PUE)
        self._within("host_share_ratio", self.host_share_ratio, 0.0, HIGHEST_SHARE_RATIO)
        self._within("host_rest_ratio", self.host_rest_ratio, 0.0, HIGHEST_SHARE_RATIO)
        self._within("carbon_g_per_kwh", self.carbon_g_per_kwh, 0.0, HIGHEST_G_PER_KWH)
        if self.host_rest_ratio is not None and not self.host_share_measured:
            raise ValueError(
                f"site {self.name!r}: host_rest_ratio is {self.host_rest_ratio}, and the host's share is not measured: give host_share_ratio alone"
            )
        if not any(self.says(figure) for figure in FIGURES):
            raise ValueError(f"site {self.name!r} says nothing: give one of {', '.join(FIGURES)}")
        if self.valid_to_ms is not None and self.valid_to_ms <= self.valid_from_ms:
            raise ValueError(
                f"site {self.name!r}: valid_to is not after valid_from: give a later end, or none"
            )

    def _within(self, figure: str, value: float | None, low: float, high: float) -> None:
        if value is not None and not low <= value <= high:
            raise ValueError(
                f"site {self.name!r}: {figure} is {value}: give a value from {low:,.15g} to {high:,.15g}"
            )

    def says(self, figure: str) -> bool:
        """Whether it gives that figure."""
        match figure:
            case "host_share":
                return self.host_share_measured or self.host_share_ratio is not None
            case "carbon":
                return self.carbon_g_per_kwh is not None or self.grid_code is not None
        return getattr(self, figure) is not None

    def applies(self, host: str | None, cluster: str | None) -> bool:
        """Whether it is for that host, at any time."""
        match Scope(self.scope_kind):
            case Scope.HOST:
                return self.scope_value == host
            case Scope.CLUSTER:
                return self.scope_value == cluster
            case Scope.ALL:
                return True

    def in_force(self, at_ms: int) -> bool:
        """Whether it holds at an instant."""
        return self.valid_from_ms <= at_ms and (self.valid_to_ms is None or at_ms < self.valid_to_ms)
