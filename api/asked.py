"""What reports are asked for over REST: keys to group on, and filters."""

from typing import Annotated

from fastapi import Depends, Query, params
from pydantic import AfterValidator

from api.resources.by import DESCRIPTION, By, keys_of
from api.resources.report_filters import Filters
from core.errors import UsageError

MOST: int = 200


def _known(given: list[str]) -> list[str]:
    try:
        keys_of(given)
    except UsageError as error:
        raise ValueError(str(error)) from error
    return given


ByQuery = Annotated[list[str], AfterValidator(_known), Query(description=DESCRIPTION, examples=["owner,day"])]
DEFAULT_BY: list[str] = [By.GPU.value]
Several = list[str] | None
"""Values of one filter: alternatives; none given is no filter."""


def only(what: str) -> params.Query:
    """The parameter of a filter that may be given several times; ``what`` it leaves, in words."""
    return params.Query(description=f"Only {what}. Repeatable.", max_length=MOST)


def filters(  # noqa: PLR0917 - one parameter a filter
    gpu: Annotated[Several, only("these GPUs, by UUID")] = None,
    host: Annotated[Several, only("GPUs in these hosts")] = None,
    model: Annotated[Several, only("GPUs of these models")] = None,
    owner: Annotated[Several, only("lines of these teams")] = None,
    namespace: Annotated[Several, only("workloads in these Kubernetes namespaces")] = None,
    workload: Annotated[Several, only("these workloads, as by=workload names them")] = None,
    user: Annotated[Several, only("workloads of these users")] = None,
    project: Annotated[Several, only("lines of these projects of a team")] = None,
    kind: Annotated[Several, only("workloads of these kinds (process, pod, slurm_job …)")] = None,
    name: Annotated[Several, only("workloads of these names")] = None,
    q: Annotated[Several, only("workloads with these words in name, user, namespace, host or key")] = None,
) -> Filters:
    """Filters of a report; several of one are alternatives, of different ones conditions."""
    texts = (gpu, host, model, owner, namespace, workload, user, project, kind, name, q)
    return Filters(*(tuple(given or ()) for given in texts))


FiltersDep = Annotated[Filters, Depends(filters)]
