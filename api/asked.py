"""What reports are asked for over REST: keys to group on, and filters."""

from typing import Annotated

from fastapi import Depends, Query
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
_Several = list[str] | None


def filters(  # noqa: PLR0917 - one parameter a filter
    gpu: Annotated[
        _Several, Query(description="Only these GPUs, by UUID. Repeatable.", max_length=MOST)
    ] = None,
    host: Annotated[
        _Several, Query(description="Only GPUs in these hosts. Repeatable.", max_length=MOST)
    ] = None,
    model: Annotated[
        _Several, Query(description="Only GPUs of these models. Repeatable.", max_length=MOST)
    ] = None,
    owner: Annotated[
        _Several, Query(description="Only lines of these teams. Repeatable.", max_length=MOST)
    ] = None,
    namespace: Annotated[
        _Several,
        Query(description="Only workloads in these Kubernetes namespaces. Repeatable.", max_length=MOST),
    ] = None,
    workload: Annotated[
        _Several,
        Query(description="Only these workloads, as by=workload names them. Repeatable.", max_length=MOST),
    ] = None,
    user: Annotated[
        _Several, Query(description="Only workloads of these users. Repeatable.", max_length=MOST)
    ] = None,
    project: Annotated[
        _Several, Query(description="Only lines of these projects of a team. Repeatable.", max_length=MOST)
    ] = None,
    kind: Annotated[
        _Several,
        Query(
            description="Only workloads of these kinds (process, pod, slurm_job …). Repeatable.",
            max_length=MOST,
        ),
    ] = None,
    name: Annotated[
        _Several, Query(description="Only workloads of these names. Repeatable.", max_length=MOST)
    ] = None,
    q: Annotated[
        _Several,
        Query(
            description="Only workloads with these words in name, user, namespace, host or key. Repeatable.",
            max_length=MOST,
        ),
    ] = None,
) -> Filters:
    """Filters of a report; several of one are alternatives, of different ones conditions."""
    texts = (gpu, host, model, owner, namespace, workload, user, project, kind, name, q)
    return Filters(*(tuple(given or ()) for given in texts))


FiltersDep = Annotated[Filters, Depends(filters)]
