"""Who pays for GPU time: the owner rules in the store, as a lookup."""

from dataclasses import dataclass, field

from sqlalchemy.orm import Session

from core.ownership import Owner
from core.readings import WorkloadKey
from ledger.owners import OwnerBook
from store.queries import owners
from store.queries.host_facts import host_facts


@dataclass(slots=True)
class OwnerLookup:
    """Owner of a workload on a host at a time; ``borders`` (ascending): when any rule begins or ends."""

    book: OwnerBook = field(default_factory=OwnerBook)

    @property
    def borders(self) -> tuple[int, ...]:
        """Times at which an answer may change."""
        return self.book.borders

    def __call__(self, workload: WorkloadKey | None, host: str | None, at_ms: int) -> Owner | None:
        """The owner by the first rule that matches; None: unowned. ``workload`` None: the GPU's own lines (idle, gap)."""
        rule = self.book.first(workload, host, at_ms)
        return None if rule is None else rule.owner


def owner_lookup(session: Session) -> OwnerLookup:
    """A lookup over the rules as they are now."""
    return OwnerLookup(owner_book(session))


def owner_book(session: Session) -> OwnerBook:
    """The rules as they are now, with what is said of hosts."""
    return OwnerBook(tuple(owners.listing(session)), host_facts(session))
