"""What a report is of: these GPUs, hosts, models, owners, projects, users, workloads … only. Several of one are alternatives."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, and_, false, or_, select
from sqlalchemy.orm import Session

from core.readings import WorkloadKey
from store.keys import attributes_of
from store.models.gpu import GpuRow
from store.models.host import HostRow
from store.models.workload import WorkloadRow
from store.queries.ledger_sums import Only


def workload_text(workload: WorkloadKey) -> str:
    """A workload in one text: ``pod/node-1/ns/name``."""
    return "/".join((workload.kind, workload.host or "", workload.key))


def namespace_of(workload: WorkloadKey) -> str | None:
    """Its Kubernetes namespace, where it has one."""
    return dict(workload.attributes).get("namespace")


@dataclass(frozen=True, slots=True)
class Filters:
    """Texts that were asked for; empty: no condition.

    Attributes:
        gpu, host, model: of the card. owner, project: who pays; a project is one of a team's.
        namespace, user, kind, name: of the workload. workload: as ``by=workload`` has it.
        q: words in the workload's name, user, namespace or key, upper and lower case alike; all of one text must be there.
    """

    gpu: tuple[str, ...] = ()
    host: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    owner: tuple[str, ...] = ()
    namespace: tuple[str, ...] = ()
    workload: tuple[str, ...] = ()
    user: tuple[str, ...] = ()
    project: tuple[str, ...] = ()
    kind: tuple[str, ...] = ()
    name: tuple[str, ...] = ()
    q: tuple[str, ...] = ()

    def only(self, session: Session) -> Only:
        """The keys they name; what nobody knows names nothing."""
        return Only(
            self._gpus(session),
            frozenset(self.owner) if self.owner else None,
            self._workloads(session),
            frozenset(self.project) if self.project else None,
        )

    def _gpus(self, session: Session) -> frozenset[int] | None:
        if not (self.gpu or self.host or self.model):
            return None
        statement = select(GpuRow.id).outerjoin(HostRow, HostRow.id == GpuRow.host_id)
        if self.gpu:
            statement = statement.where(GpuRow.gpu_uuid.in_(self.gpu))
        if self.host:
            statement = statement.where(HostRow.name.in_(self.host))
        if self.model:
            statement = statement.where(GpuRow.model.in_(self.model))
        return frozenset(session.execute(statement).scalars())

    def _workloads(self, session: Session) -> frozenset[int] | None:
        if not (self.workload or self.namespace or self.user or self.kind or self.name or self.q):
            return None
        row = WorkloadRow
        statement = select(
            row.id, row.kind, row.key, row.name, row.user_name, HostRow.name, row.attributes
        ).outerjoin(HostRow, HostRow.id == row.host_id)
        if self.workload:
            statement = statement.where(or_(false(), *map(_is_workload, self.workload)))
        for column, texts in ((row.user_name, self.user), (row.kind, self.kind), (row.name, self.name)):
            if texts:
                statement = statement.where(column.in_(texts))
        found = set()
        for key, kind, natural, name, user, host, attributes in session.execute(statement):
            workload = WorkloadKey(kind, natural, name, user, host, attributes_of(attributes))
            fits = not self.workload or workload_text(workload) in self.workload
            if self.namespace:
                fits = fits and namespace_of(workload) in self.namespace
            if fits and all(_says(workload, text) for text in self.q):
                found.add(key)
        return frozenset(found)


def _is_workload(text: str) -> ColumnElement[bool]:
    """Narrows the search to rows of that kind and key; the host is compared in full later."""
    kind, _, rest = text.partition("/")
    return and_(WorkloadRow.kind == kind, WorkloadRow.key == rest.partition("/")[2])


def _says(workload: WorkloadKey, text: str) -> bool:
    told = " ".join(
        one
        for one in (workload.name, workload.user, namespace_of(workload), workload.key, workload.host)
        if one
    ).casefold()
    return all(word in told for word in text.casefold().split())


NO_FILTERS = Filters()
