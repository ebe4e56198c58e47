"""Rows of tables about who used what: the same figures on the pages of teams, users, jobs and runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from api.charts_use import Use, use_bar
from api.links import gpu_path, owner_path, user_path, workload_path
from api.pages.sorting import Column, SortLink, sort_rows
from api.pages.view import Address
from api.resources.report import NO_USER, UNOWNED
from api.resources.report_filters import workload_text
from api.resources.report_sum import LineSum, merged
from api.resources.who_used import Group, Level, WhoUsed
from api.words import workload_kind
from core.readings import GpuIdentity
from core.units import J_PER_KWH


@dataclass(frozen=True, slots=True)
class UseRow:
    """One row.

    Attributes:
        name, href: what it is and its page; empty: it has none. note: what kind, how many runs.
        teams, users: with their pages. hosts: names. use, bar: hours. of: money, energy, carbon.
    """

    name: str
    href: str
    note: str
    teams: tuple[tuple[str, str], ...]
    users: tuple[tuple[str, str], ...]
    hosts: tuple[str, ...]
    use: Use
    bar: Markup
    of: LineSum

    @property
    def energy_kwh(self) -> float | None:
        """At the GPUs."""
        return None if self.of.energy_j is None else self.of.energy_j / J_PER_KWH

    @property
    def carbon_kg(self) -> float | None:
        """Of site energy."""
        return None if self.of.carbon_g is None else self.of.carbon_g / 1000


COLUMNS: Final = {
    "name": Column("Name", lambda one: name_of(one).casefold(), down=False),
    "held": Column("Held", lambda one: one.use.held_h),
    "active": Column("Active", lambda one: one.use.active_h),
    "effective": Column("Effective", lambda one: one.use.effective_h),
    "cost": Column("Cost", lambda one: one.total.spend_usd),
    "idle": Column("Idle", lambda one: one.total.usd("idle_cost_usd")),
    "energy": Column("Energy", lambda one: one.total.energy_j),
    "carbon": Column("CO₂e", lambda one: one.total.carbon_g),
}


def name_of(group: Group) -> str:
    """A row's name as its level has it, for order and search."""
    if group.workload is not None and (group.key is None or "/" in group.key or "\n" in group.key):
        return group.workload.name
    return group.key or ""


def row_of(
    group: Group,
    level: Level,
    address: Address,
    most_h: float,
    gpus: Mapping[str, GpuIdentity] | None = None,
) -> UseRow:
    """A group as a row of its level."""
    name, href, note = _named(group, level, address, gpus or {})
    return UseRow(
        name=name,
        href=href,
        note=note,
        teams=tuple((team, address.link(owner_path(team))) for team in sorted(group.teams)),
        users=tuple((user, address.link(user_path(user))) for user in sorted(group.users)),
        hosts=tuple(sorted(group.hosts)),
        use=group.use,
        bar=use_bar(group.use, most_h),
        of=group.total,
    )


def _named(
    group: Group, level: Level, address: Address, gpus: Mapping[str, GpuIdentity]
) -> tuple[str, str, str]:
    workload = group.workload
    runs = len(group.runs)
    many = f"{runs:,} runs"
    match level:
        case Level.OWNER:
            if group.key is None:
                return UNOWNED, "/settings/owners", "no rule says whose it is: give one"
            return group.key, address.link(owner_path(group.key)), ", ".join(sorted(group.projects))
        case Level.PROJECT:
            return group.key or "no project", "", ", ".join(sorted(group.centres))
        case Level.USER:
            href = address.link(user_path(group.key)) if group.key else ""
            return group.key or NO_USER, href, many if runs > 1 else "1 run"
        case Level.GPU:
            uuid = group.key or ""
            identity = gpus.get(uuid)
            told = (
                uuid
                if identity is None or identity.index is None
                else f"GPU {identity.index} on {identity.host}"
            )
            return told, address.link(gpu_path(uuid)), (identity and identity.model) or ""
    if workload is None:
        return group.key or "", "", ""
    if level is Level.JOB and runs > 1:
        href = Address("/workloads", tuple(pair for pair in address.query if pair[0] != "page")).href(
            by=Level.RUN.value, name=workload.name, user=workload.user
        )
        return workload.name, href, f"{many}, {workload_kind(workload)}"
    note = workload_kind(workload) + (f", {workload.key}" if level is Level.RUN else "")
    return workload.name, address.link(workload_path(workload_text(workload))), note


@dataclass(frozen=True, slots=True)
class UseTable:
    """Rows in order with their headers, and the sum of all of them, shown or not; ``count`` is without extra ones."""

    rows: tuple[UseRow, ...]
    sort: Mapping[str, SortLink]
    total: UseRow
    count: int


def table_of(
    found: WhoUsed,
    level: Level,
    address: Address,
    *,
    part: slice | None = None,
    parameter: str = "sort",
    extra: Sequence[Group] = (),
    gpus: Mapping[str, GpuIdentity] | None = None,
) -> UseTable:
    """A table of a level in the order that the address asks for.

    Args:
        found: its rows. part: of them, those shown. parameter: of the address, where a page has several tables.
        extra: rows that stand last whatever the order. gpus: names of GPUs.
    """
    ordered, sort = sort_rows(address, found.rows, COLUMNS, "-cost", parameter=parameter)
    ordered += extra
    most_h = max((one.use.held_h for one in ordered), default=0.0)
    shown = ordered if part is None else ordered[part]
    rows = tuple(row_of(one, level, address, most_h, gpus) for one in shown)
    total = found.total
    if extra:
        total = Group("", merged([total.total, *(one.total for one in extra)]))
    whole = row_of(total, Level.PROJECT, address, total.use.held_h)
    return UseTable(rows, sort, whole, len(found.rows))
