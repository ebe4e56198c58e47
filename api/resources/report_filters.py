"""What a report is of: these GPUs, hosts, models, owners, namespaces, workloads only. Several of one are alternatives."""

from dataclasses import dataclass

from sqlalchemy import select
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
    """Texts that were asked for; empty: no condition. ``workload`` as ``by=workload`` has it, ``owner`` a team."""

    gpu: tuple[str, ...] = ()
    host: tuple[str, ...] = ()
    model: tuple[str, ...] = ()
    owner: tuple[str, ...] = ()
    namespace: tuple[str, ...] = ()
    workload: tuple[str, ...] = ()

    def only(self, session: Session) -> Only:
        """The keys they name; what nobody knows names nothing."""
        return Only(
            self._gpus(session), frozenset(self.owner) if self.owner else None, self._workloads(session)
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
        if not (self.workload or self.namespace):
            return None
        row = WorkloadRow
        statement = select(row.id, row.kind, row.key, HostRow.name, row.attributes).outerjoin(
            HostRow, HostRow.id == row.host_id
        )
        found = set()
        for key, kind, natural, host, attributes in session.execute(statement):
            workload = WorkloadKey(kind, natural, "", None, host, attributes_of(attributes))
            fits = not self.workload or workload_text(workload) in self.workload
            if fits and (not self.namespace or namespace_of(workload) in self.namespace):
                found.add(key)
        return frozenset(found)


NO_FILTERS = Filters()
