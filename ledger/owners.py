"""Which owner rule claims GPU time: the first that fits, as of a time. Pure.

Rules are asked in their order. A rule that asks only about the host also claims what no known workload held there:
idle time, gaps, and time held by something unseen. Every other rule claims time of workloads alone.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Final

from core.ownership import HostFacts, Owner, OwnerConditions, OwnerRule
from core.readings import WorkloadKey

KINDS: Final = ("process", "container", "pod", "slurm_job", "systemd_unit", "engine")


@dataclass(frozen=True, slots=True)
class Subject:
    """GPU time as conditions see it.

    Attributes:
        workload: who held the GPU; None: the GPU's own time, which only conditions on the host can claim.
        known: its attributes and name. host: of the GPU. said: of that host, by name.
    """

    workload: WorkloadKey | None
    known: Mapping[str, str]
    host: str | None
    said: Mapping[str, str]


def subject_of(workload: WorkloadKey | None, host: str | None, facts: HostFacts | None) -> Subject:
    """What is to be claimed."""
    known: dict[str, str] = {}
    if workload is not None:
        known = {"name": workload.name, **dict(workload.attributes)}
        if workload.kind == "systemd_unit":  # a source that gives no attributes names the unit alone
            known.setdefault("systemd_unit", workload.name)
    return Subject(workload, known, host, {} if facts is None else facts.named)


def matches(conditions: OwnerConditions, subject: Subject) -> bool:
    """Every condition holds."""
    if conditions.host is not None and not _fits(subject.host, conditions.host):
        return False
    if conditions.host_labels and not _labels_fit(conditions.host_labels, subject.said):
        return False
    workload, known = subject.workload, subject.known
    if workload is None:
        return asks_only_about_hosts(conditions)
    for value, pattern in (
        (workload.user, conditions.user),
        (workload.kind, conditions.kind),
        (known.get("namespace"), conditions.namespace),
        (known.get("slurm_account"), conditions.slurm_account),
        (known.get("systemd_unit"), conditions.unit),
        (known.get("image"), conditions.image),
    ):
        if pattern is not None and not _fits(value, pattern):
            return False
    return not conditions.labels or _labels_fit(conditions.labels, known)


def _labels_fit(wanted: Sequence[tuple[str, str]], known: Mapping[str, str]) -> bool:
    return all(_fits(known.get(name), pattern) for name, pattern in wanted)


def _fits(value: str | None, pattern: str) -> bool:
    return value is not None and fnmatchcase(value, pattern)


def asks_only_about_hosts(conditions: OwnerConditions) -> bool:
    """No condition on a workload: the rule claims the GPU's own time too."""
    return conditions == OwnerConditions(host=conditions.host, host_labels=conditions.host_labels)


def matches_everything(conditions: OwnerConditions) -> bool:
    """Nothing narrows it: no condition at all, or only such as every name fits; having a label narrows."""
    return all(
        " " not in name and "*" in pattern and set(pattern) <= {"*", "?"}
        for name, pattern in conditions.given
    )


def sentence(conditions: OwnerConditions) -> str:
    """For people: ``namespace ml-*, user ann``."""
    return (
        ", ".join(
            f"{name.replace('host_', 'host ', 1)}={pattern}"
            if " " in name
            else f"{name.replace('_', ' ')} {pattern}"
            for name, pattern in conditions.given
        )
        or "everything"
    )


def handed_over(rule: OwnerRule, owner: Owner, at_ms: int) -> tuple[OwnerRule | None, OwnerRule]:
    """A rule whose owner is another one from ``at_ms`` on: what it was until then (None: nothing), and from then.

    Raises:
        ValueError: it ended before; says so.
    """
    if rule.valid_to_ms is not None and rule.valid_to_ms <= at_ms:
        raise ValueError(f"rule {rule.id} has ended by then: give an earlier day, or add a new rule")
    if at_ms <= rule.valid_from_ms:
        return None, replace(rule, owner=owner)
    return replace(rule, valid_to_ms=at_ms), replace(rule, id=0, owner=owner, valid_from_ms=at_ms)


@dataclass(slots=True)
class OwnerBook:
    """Rules in their order, asked for GPU time.

    An answer only changes where a rule begins or ends (``borders``, ascending), so one serves all hours between two
    of them: asked once for each workload and host there, remembered for the rest.

    Attributes:
        rules: first match wins. facts: of hosts by name, as they are now.
    """

    rules: tuple[OwnerRule, ...] = ()
    facts: Mapping[str, HostFacts] = field(default_factory=dict)
    borders: tuple[int, ...] = field(init=False)
    _in_force: dict[int, tuple[OwnerRule, ...]] = field(init=False, default_factory=dict)
    _known: dict[tuple[WorkloadKey | None, str | None, int], OwnerRule | None] = field(
        init=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        """Collect the times at which any rule begins or ends."""
        ends = {rule.valid_to_ms for rule in self.rules if rule.valid_to_ms is not None}
        self.borders = tuple(sorted(ends | {rule.valid_from_ms for rule in self.rules}))

    def first(self, workload: WorkloadKey | None, host: str | None, at_ms: int) -> OwnerRule | None:
        """The rule that claims it; None: unowned."""
        part = bisect_right(self.borders, at_ms)
        key = (workload, host, part)
        if key not in self._known:
            self._known[key] = next(self._all(workload, host, at_ms, part), None)
        return self._known[key]

    def fitting(self, workload: WorkloadKey | None, host: str | None, at_ms: int) -> list[OwnerRule]:
        """Every rule that fits, the one that claims it first."""
        return list(self._all(workload, host, at_ms, bisect_right(self.borders, at_ms)))

    def _all(
        self, workload: WorkloadKey | None, host: str | None, at_ms: int, part: int
    ) -> Iterator[OwnerRule]:
        if part not in self._in_force:
            self._in_force[part] = tuple(rule for rule in self.rules if rule.holds_at(at_ms))
        subject = subject_of(workload, host, None if host is None else self.facts.get(host))
        return (rule for rule in self._in_force[part] if matches(rule.conditions, subject))
