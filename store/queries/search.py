"""Finding things of the fleet by parts of their names; every word must be somewhere in them. ``%`` and ``_`` are letters."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Select, and_, false, func, or_, select
from sqlalchemy.orm import Session

from core.finding import Finding
from store import finding_json
from store.models.engine import EngineRow
from store.models.gpu import GpuRow
from store.models.host import HostRow
from store.models.owner import OwnerRow
from store.models.recommendation import RecommendationRow
from store.models.workload import WorkloadRow


class GpuHit(NamedTuple):
    """A GPU with the words it is known by."""

    gpu_uuid: str
    number: int | None
    host: str | None
    model: str | None


class WorkloadHit(NamedTuple):
    """One run of a workload."""

    id: int
    kind: str
    name: str
    key: str
    user: str | None
    host: str | None


class EngineHit(NamedTuple):
    """An LLM engine."""

    engine: str
    kind: str
    model: str | None


def gpus(session: Session, words: Sequence[str], most: int) -> list[GpuHit]:
    """GPUs by UUID, model, host or number on its host."""
    row = GpuRow
    found = [_says((row.gpu_uuid, row.model, HostRow.name), word, row.gpu_index) for word in words]
    statement = (
        select(row.gpu_uuid, row.gpu_index, HostRow.name, row.model)
        .outerjoin(HostRow, HostRow.id == row.host_id)
        .where(*found)
        .order_by(HostRow.name, row.gpu_index, row.gpu_uuid)
    )
    return [GpuHit(*hit) for hit in _first(session, statement, most)]


def hosts(session: Session, words: Sequence[str], most: int) -> list[str]:
    """Names of hosts."""
    statement = select(HostRow.name).where(_all((HostRow.name,), words)).order_by(HostRow.name)
    return [name for (name,) in _first(session, statement, most)]


def users(session: Session, words: Sequence[str], most: int) -> list[str]:
    """Users of workloads."""
    name = WorkloadRow.user_name
    statement = select(name).where(name.is_not(None), _all((name,), words)).distinct().order_by(name)
    return [user for (user,) in _first(session, statement, most)]


def workloads(session: Session, words: Sequence[str], most: int) -> list[WorkloadHit]:
    """Runs of workloads by name, key (pod, Slurm job) or user; the newest first."""
    row = WorkloadRow
    statement = (
        select(row.id, row.kind, row.name, row.key, row.user_name, HostRow.name)
        .outerjoin(HostRow, HostRow.id == row.host_id)
        .where(_all((row.name, row.key, row.user_name, row.attributes), words))
        .order_by(row.id.desc())
    )
    return [WorkloadHit(*hit) for hit in _first(session, statement, most)]


def engines(session: Session, words: Sequence[str], most: int) -> list[EngineHit]:
    """Engines by name or served model."""
    row = EngineRow
    statement = (
        select(row.engine, row.kind, row.model)
        .where(_all((row.engine, row.model), words))
        .order_by(row.engine)
    )
    return [EngineHit(*hit) for hit in _first(session, statement, most)]


def teams(session: Session, words: Sequence[str], most: int) -> list[str]:
    """Teams that owned something, by team, project or cost centre."""
    row = OwnerRow
    statement = (
        select(row.team)
        .where(_all((row.team, row.project, row.cost_centre), words))
        .distinct()
        .order_by(row.team)
    )
    return [team for (team,) in _first(session, statement, most)]


def recommendations(session: Session, words: Sequence[str], most: int) -> list[tuple[int, Finding]]:
    """Recommendations whose text holds the words, without evidence and chart; the newest first."""
    row = RecommendationRow
    written = [json.dumps(word)[1:-1] for word in words]  # as in the text of a finding: quotes and ö escaped
    statement = select(row.id, row.finding).where(_all((row.finding,), written)).order_by(row.id.desc())
    found = _first(session, statement, most)
    return [(key, finding_json.brief_from_text(text)) for key, text in found]


def _all(columns: Sequence[Any], words: Sequence[str]) -> ColumnElement[bool]:
    return and_(*[_says(columns, word) for word in words]) if words else false()


def _says(columns: Sequence[Any], word: str, number: Any = None) -> ColumnElement[bool]:
    """One of the columns holds the word; a column of numbers is it."""
    said = [func.lower(column).contains(word.lower(), autoescape=True) for column in columns]
    if not word.isascii():
        # SQLite makes small letters of A to Z alone: "Özgür" is not found in lower('Özgür').
        ways = {word, word.lower(), word.upper(), word.capitalize()}
        said += [column.contains(way, autoescape=True) for column in columns for way in sorted(ways)]
    if number is not None and word.isascii() and word.isdecimal() and len(word) <= 4:
        said.append(number == int(word))
    if number is not None and word.lower() == "gpu":
        said.append(number.is_not(None))
    return or_(*said)


def _first(session: Session, statement: "Select[*tuple[Any, ...]]", most: int) -> Sequence[Any]:
    return session.execute(statement.limit(most)).all()
