"""Who used what, level by level: teams, their projects, users, jobs (runs of one name by one user), single runs."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from api.charts_use import Use
from api.resources.by import By
from api.resources.idle_sharing import IdlePolicy, Sharing
from api.resources.report_filters import NO_FILTERS, Filters, namespace_of, workload_text
from api.resources.report_parts import Need, Part, parts
from api.resources.report_sum import LineSum, Sums, merged
from api.resources.scope import Scope
from core.readings import WorkloadKey

AMOUNTS: Final = (
    *("known_ms", "covered_ms", "allocated_ms", "active_ms", "effective_ms", "effective_unknown_ms"),
    *(
        "unknown_ms",
        "energy_mj",
        "site_energy_mj",
        "cost_usd",
        "idle_cost_usd",
        "billed_energy_usd",
        "carbon_ug",
    ),
)
"""No more than is shown: each costs time over months of a fleet."""


class Level(StrEnum):
    """What one row is."""

    OWNER = "owner"
    PROJECT = "project"
    USER = "user"
    JOB = "job"
    RUN = "run"
    GPU = "gpu"


@dataclass(slots=True)
class Group:
    """One row.

    Attributes:
        key: what it is called by, unique at its level; None: what nobody is known to have held or to own.
        total: its lines. workload: a run of it. gpu_uuid: of a row that is a GPU. teams, users, hosts, projects, centres: of its lines.
        runs: keys of the runs in it, as ``by=workload`` has them.
    """

    key: str | None
    total: LineSum = field(default_factory=LineSum)
    workload: WorkloadKey | None = None
    gpu_uuid: str | None = None
    teams: dict[str, None] = field(default_factory=dict)
    users: dict[str, None] = field(default_factory=dict)
    hosts: dict[str, None] = field(default_factory=dict)
    projects: dict[str, None] = field(default_factory=dict)
    centres: dict[str, None] = field(default_factory=dict)
    runs: set[str] = field(default_factory=set)

    def note(self, part: Part) -> None:
        """What a part tells of whose it is."""
        if part.owner is not None:
            self.teams[part.owner.team] = None
            if part.owner.project:
                self.projects[part.owner.project] = None
            if part.owner.cost_centre:
                self.centres[part.owner.cost_centre] = None
        workload = part.workload
        if workload is not None:
            self.workload = workload
            self.runs.add(workload_text(workload))
            if workload.user:
                self.users[workload.user] = None
            if workload.host:
                self.hosts[workload.host] = None
        if part.gpu is not None:
            self.gpu_uuid = part.gpu.gpu_uuid

    @property
    def use(self) -> Use:
        """Its hours held, active, effective; what nothing could tell is None."""
        one = self.total
        named = one.whole("known_ms") > one.whole("unknown_ms")
        effective, untold = one.whole("effective_ms"), one.whole("effective_unknown_ms")
        return Use(
            held_h=one.hours("allocated_ms"),
            active_h=one.hours("active_ms") if named else None,
            # No 0 where active time remains that nothing can tell about.
            effective_h=one.hours("effective_ms") if named and (effective > 0 or untold <= 0) else None,
            untold_h=one.hours("effective_unknown_ms"),
            unnamed_h=0.0 if self.key is None else max(0.0, one.hours("unknown_ms") - one.gap_ms / 3.6e6),
        )


@dataclass(frozen=True, slots=True)
class WhoUsed:
    """All rows of a level, what nobody held (``nobody``; None: nothing, or it was not asked for), and the sum of the rows."""

    rows: tuple[Group, ...]
    nobody: Group | None
    total: Group
    namespaces: tuple[str, ...] = ()


def who_used(
    scope: Scope, level: Level, filters: Filters = NO_FILTERS, *, idle: IdlePolicy = IdlePolicy.KEEP
) -> WhoUsed:
    """Rows of a level in no order.

    Args:
        scope: window and session.
        level: what a row is.
        filters: lines of these only.
        idle: what becomes of the idle cost of GPUs that nobody owns (of teams), or that nobody held.
    """
    dimensions = {"owner", "money"}
    if level in {Level.USER, Level.JOB, Level.RUN}:
        dimensions.add("workload")
    if level is Level.GPU:
        dimensions.add("gpu")
    sharing = None
    if idle is not IdlePolicy.KEEP:
        sharing = Sharing((By.OWNER if level is Level.OWNER else By.USER,), idle)
        dimensions.add("day")
    groups: dict[str | None, Group] = {}
    namespaces: dict[str, None] = {}
    for part, amounts in parts(scope, Need(frozenset(dimensions), AMOUNTS, filters.only(scope.session))):
        key = _key(level, part)
        group = groups.get(key)
        if group is None:
            group = groups[key] = Group(key)
        group.total.add(part, amounts)
        group.note(part)
        if part.workload is not None and (namespace := namespace_of(part.workload)):
            namespaces[namespace] = None
        if sharing is not None:
            sharing.note((key,), part, amounts)
    if sharing is not None:
        sums: Sums = {(key,): group.total for key, group in groups.items()}
        sharing.apply(sums)
    nobody = groups.pop(None, None)
    rows = tuple(groups.values())
    total = Group("", merged(group.total for group in rows))
    return WhoUsed(rows, nobody, total, tuple(sorted(namespaces)))


def by_user(jobs: WhoUsed) -> WhoUsed:
    """Users of what was read by job or by run."""
    users: dict[str, Group] = {}
    for job in jobs.rows:
        key = "" if job.workload is None else job.workload.user or ""
        user = users.setdefault(key, Group(key))
        user.total.merge(job.total)
        user.workload = job.workload
        user.runs |= job.runs
        for name in ("teams", "users", "hosts", "projects", "centres"):
            getattr(user, name).update(getattr(job, name))
    return WhoUsed(tuple(users.values()), jobs.nobody, jobs.total, jobs.namespaces)


def _key(level: Level, part: Part) -> str | None:
    match level:
        case Level.OWNER:
            return None if part.owner is None else part.owner.team
        case Level.PROJECT:
            return None if part.owner is None else part.owner.project
        case Level.GPU:
            return None if part.gpu is None else part.gpu.gpu_uuid
    if part.workload is None:
        return None
    match level:
        case Level.USER:
            return part.workload.user or ""
        case Level.JOB:
            return f"{part.workload.user or ''}\n{part.workload.kind}\n{part.workload.name}"
    return workload_text(part.workload)
