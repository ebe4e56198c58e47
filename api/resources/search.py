"""Search: things of the fleet by parts of their names, grouped by what they are."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy.orm import Session

from api.words import WORKLOAD
from store.queries import search

MOST_LETTERS: Final = 200
MOST_WORDS: Final = 6
"""More of a long text would only make the search slow: nothing is named with so many words."""
CANDIDATES: Final = 40
"""Recommendations whose text holds the words, of which titles are looked at."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing that was found: its name, what there is to know about it, the kind's key for its page."""

    name: str
    note: str
    key: str


@dataclass(frozen=True, slots=True)
class Hits:
    """Things of one kind; ``more`` says that there are others."""

    kind: str
    title: str
    hits: tuple[Hit, ...]
    more: bool


def words_of(text: str) -> list[str]:
    """The words to look for, the first few of a long text; characters that no name can hold are dropped."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text[:MOST_LETTERS])
    return list(dict.fromkeys(plain.split()))[:MOST_WORDS]


def find(session: Session, text: str, most: int) -> list[Hits]:
    """What the words name, at most ``most`` of a kind; kinds without a hit are left out."""
    words = [word for word in words_of(text) if word.lower() not in {"on", "of"}] or words_of(text)
    if not words:
        return []
    one_more = most + 1
    found = {
        ("host", "Hosts"): [Hit(name, "", name) for name in search.hosts(session, words, one_more)],
        ("gpu", "GPUs"): [_gpu(hit) for hit in search.gpus(session, words, one_more)],
        ("owner", "Teams"): [Hit(team, "", team) for team in search.teams(session, words, one_more)],
        ("user", "Users"): [Hit(user, "", user) for user in search.users(session, words, one_more)],
        ("engine", "Engines"): [
            Hit(hit.engine, " · ".join(part for part in (hit.model, hit.kind) if part), hit.engine)
            for hit in search.engines(session, words, one_more)
        ],
        ("workload", "Workloads"): [_workload(hit) for hit in search.workloads(session, words, one_more)],
        ("recommendation", "Recommendations"): _recommendations(session, words, one_more),
    }
    return [
        Hits(kind, title, tuple(hits[:most]), len(hits) > most)
        for (kind, title), hits in found.items()
        if hits
    ]


def _gpu(hit: search.GpuHit) -> Hit:
    name = hit.gpu_uuid if hit.number is None else f"GPU {hit.number}"
    if hit.host is not None:
        name += f" on {hit.host}"
    note = [hit.model or "", hit.gpu_uuid if hit.number is not None else ""]
    return Hit(name, " · ".join(part for part in note if part), hit.gpu_uuid)


def _workload(hit: search.WorkloadHit) -> Hit:
    parts = (
        WORKLOAD.get(hit.kind, hit.kind),
        hit.key if hit.key != hit.name else "",
        hit.user or "",
        hit.host or "",
    )
    return Hit(hit.name, " · ".join(part for part in parts if part), str(hit.id))


def _recommendations(session: Session, words: list[str], most: int) -> list[Hit]:
    found = []
    for key, finding in search.recommendations(session, words, CANDIDATES):
        said = f"{finding.title} {finding.rule_id} {finding.subject.label}".lower()
        if all(word.lower() in said for word in words):
            found.append(Hit(finding.title, finding.rule_id, str(key)))
    return found[:most]
