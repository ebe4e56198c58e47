"""Whose GPU it was, by the labels that dcgm-exporter takes from the kubelet and from Slurm.

``pod``, ``namespace`` and ``container`` are the exporter's own where Prometheus does not honour the labels of what it
scrapes; then those of the work are called ``exported_…``.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from core.readings import WorkloadKey

_EXPORTER: Final = re.compile(r"(?:dcgm|nvidia|gpu).*exporter")


class Pod(NamedTuple):
    """A pod by its name."""

    namespace: str
    pod: str


def workload_of(
    labels: Mapping[str, str], host: str | None, *, relabelled: bool = False
) -> WorkloadKey | None:
    """The pod or Slurm job that a series of a GPU was labelled with; None where nothing held it, or nobody says.

    Args:
        labels: of the series.
        host: of the GPU.
        relabelled: labels of this Prometheus are known to be renamed, so a plain ``pod`` is never the work's.
    """
    prefix = "exported_" if relabelled or "exported_pod" in labels else ""
    pod, container = labels.get(f"{prefix}pod"), labels.get(f"{prefix}container", "")
    if pod and not (_EXPORTER.search(pod) or _EXPORTER.search(container)):
        namespace = labels.get(f"{prefix}namespace", "")
        named = {"namespace": namespace, "pod": pod, "container": container}
        attributes = tuple(sorted((name, value) for name, value in named.items() if value))
        return WorkloadKey("pod", f"{namespace}/{pod}", pod, host=host, attributes=attributes)
    job = labels.get("hpc_job", "").strip()
    if job and job != "0":
        return WorkloadKey("slurm_job", job, f"job {job}", host=host, attributes=(("slurm_job", job),))
    return None


def pod_of(labels: Mapping[str, str]) -> Pod | None:
    """The pod that serves what was scraped: of an LLM server, itself."""
    pod = labels.get("pod") or labels.get("kubernetes_pod_name")
    if not pod:
        return None
    return Pod(labels.get("namespace") or labels.get("kubernetes_namespace") or "", pod)


def pod_behind(holder: object) -> Pod | None:
    """The pod that a workload of ``workload_of`` is; None of a Slurm job and of everything else."""
    if not isinstance(holder, WorkloadKey) or holder.kind != "pod":
        return None
    names = dict(holder.attributes)
    return Pod(names.get("namespace", ""), names["pod"])
