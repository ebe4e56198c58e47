"""What people say about hosts: cluster, instance type, region, labels. Days of the ledger that it touches are booked anew."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Annotated, Any, Final

from sqlalchemy.orm import Session

from api.resources.columns import about
from core.errors import NotFoundError, UsageError
from core.ownership import HostFacts
from store.known import known_gpus
from store.queries import host_facts as kept
from store.queries import ledger_pending

OWN_FACTS: Final = ("cluster", "instance_type", "region")
LONGEST: Final = 200
MOST_LABELS: Final = 50
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]{0,62}")


@dataclass(frozen=True, slots=True)
class HostSays:
    """What is said of the hosts that a pattern names: facts by name; empty or None removes."""

    host: str
    facts: Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class HostFactsView:
    """What is said of a host."""

    host: Annotated[str, about("Its name.")]
    cluster: Annotated[str | None, about("Cluster or site it stands in; null: not said.")]
    instance_type: Annotated[str | None, about("As its provider calls it.")]
    region: Annotated[str | None, about("Cloud region or place.")]
    labels: Annotated[Mapping[str, str], about("Everything else that is said of it, by name.")]


def say(session: Session, said: Sequence[HostSays], *, skip_unknown: bool = False) -> list[HostFactsView]:
    """Keep what is said, line after line: all or none.

    Args:
        session: of the database.
        said: of which hosts what; a name may be a pattern with ``*``.
        skip_unknown: pass over names that no host has.

    Raises:
        UsageError: a name or value that cannot be kept. NotFoundError: no host has that name.
    """
    kept.begin(session)
    before = kept.host_facts(session)
    after = dict(before)
    named: dict[str, None] = {}
    for line in said:
        hosts = [name for name in sorted(before) if fnmatchcase(name, line.host)]
        if not hosts and not skip_unknown:
            raise NotFoundError(
                f"no host is called {line.host!r}: gpuwise hosts lists them; nothing was changed"
            )
        for name, value in line.facts.items():
            _check(line.host, name, value)
        for host in hosts:
            after[host] = _with(after[host], line.facts)
            named[host] = None
    changed = [host for host in named if after[host] != before[host]]
    for host in changed:
        kept.write(session, after[host])
    gpu_uuids = _gpus_on(session, set(changed)) if changed else []
    if gpu_uuids:
        ledger_pending.mark(session, 0, None, gpu_uuids)
    return [view(after[host]) for host in named]


def view(facts: HostFacts) -> HostFactsView:
    """What is said of a host, as a row."""
    return HostFactsView(facts.host, facts.cluster, facts.instance_type, facts.region, dict(facts.labels))


def _with(facts: HostFacts, said: Mapping[str, str | None]) -> HostFacts:
    own: dict[str, Any] = {name: said[name] or None for name in OWN_FACTS if name in said}
    labels = dict(facts.labels) | {name: value or "" for name, value in said.items() if name not in OWN_FACTS}
    left = tuple(sorted((name, value) for name, value in labels.items() if value))
    if len(left) > MOST_LABELS:
        raise UsageError(f"host {facts.host} would have {len(left)} labels: keep to {MOST_LABELS}")
    return replace(facts, labels=left, **own)


def _check(host: str, name: str, value: str | None) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:40]!r} (of host {host}) is no name of a fact: use letters, digits and _ . / -, beginning with a letter"
        )
    if value is not None and (len(value) > LONGEST or not value.isprintable()):
        raise UsageError(f"{name} of host {host} is {value[:40]!r}: use up to {LONGEST} printable characters")


def _gpus_on(session: Session, hosts: set[str]) -> list[str]:
    known = known_gpus(session.connection())
    return [gpu.identity.gpu_uuid for gpu in known if gpu.identity.host in hosts]
