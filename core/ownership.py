"""Who pays: owners, the rules that say so, and what is known of a host beyond its name. Standard library only."""

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, order=True)
class Owner:
    """A team, and where it told: one of its projects and the cost centre that is charged."""

    team: str
    project: str = ""
    cost_centre: str = ""

    @property
    def name(self) -> str:
        """For people: ``team / project``."""
        return " / ".join(part for part in (self.team, self.project) if part)


@dataclass(frozen=True, slots=True)
class OwnerConditions:
    """What an owner rule asks for; ``*``, ``?`` and ``[abc]`` stand for letters, every condition must hold.

    Attributes:
        user, namespace, slurm_account, unit, image, kind: of the workload; an unknown one fits nothing.
        labels: attributes of the workload (``core.readings.WorkloadKey``) and its ``name``, each with a pattern.
        host: name of the host the GPU sits in.
        host_labels: what the user says of that host: ``cluster``, ``instance_type``, ``region`` and labels.
    """

    user: str | None = None
    namespace: str | None = None
    slurm_account: str | None = None
    unit: str | None = None
    image: str | None = None
    kind: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    host: str | None = None
    host_labels: tuple[tuple[str, str], ...] = ()

    @property
    def given(self) -> tuple[tuple[str, str], ...]:
        """Every condition as name and pattern; a label's name is ``label NAME``."""
        found: list[tuple[str, str]] = []
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, tuple):
                found += [(f"{field.name.removesuffix('s')} {name}", pattern) for name, pattern in value]
            elif value is not None:
                found.append((field.name, value))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class OwnerRule:
    """One rule: from when to when what fits ``conditions`` belongs to ``owner``, unless an earlier rule fits.

    Attributes:
        id: its key; 0 where it is not stored yet.
        valid_from_ms, valid_to_ms: in force from (inclusive) to (exclusive; None: still).
        note: the user's own words.
    """

    id: int
    owner: Owner
    conditions: OwnerConditions
    valid_from_ms: int = 0
    valid_to_ms: int | None = None
    note: str = ""

    def holds_at(self, at_ms: int) -> bool:
        """It is in force then."""
        return self.valid_from_ms <= at_ms and (self.valid_to_ms is None or at_ms < self.valid_to_ms)


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What the user says about a host.

    Attributes:
        host: its name.
        cluster: the cluster or site it stands in. instance_type: as its provider calls it (``p5.48xlarge``).
        region: cloud region or place; resolves grid carbon where it is known.
        labels: everything else, by name.
    """

    host: str
    cluster: str | None = None
    instance_type: str | None = None
    region: str | None = None
    labels: tuple[tuple[str, str], ...] = ()

    @property
    def named(self) -> dict[str, str]:
        """Everything that is said, by name; a fact of its own goes before a label of the same name."""
        own = {"cluster": self.cluster, "instance_type": self.instance_type, "region": self.region}
        return dict(self.labels) | {name: value for name, value in own.items() if value is not None}
