"""Who pays: owners, and what is known of a host beyond its name. Standard library only."""

from dataclasses import dataclass


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
