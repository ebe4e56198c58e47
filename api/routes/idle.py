"""REST: is this GPU, host, pod or job idle, since when, how sure."""

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse, Response

from api.deps import NowDep, SessionDep
from api.resources.as_json import to_json
from api.resources.idle import IdleView
from api.resources.idle import idle as answer
from api.resources.idle_subject import Asked

router = APIRouter(prefix="/idle", tags=["idle"])

MOST = 300


@router.get("", response_model=IdleView)
def get_idle(  # noqa: PLR0917 - one parameter of the address each
    session: SessionDep,
    now: NowDep,
    gpu: Annotated[str | None, Query(max_length=MOST, description="UUID of a GPU or MIG slice.")] = None,
    host: Annotated[
        str | None, Query(max_length=MOST, description="Name of a host: all of its GPUs.")
    ] = None,
    pod: Annotated[
        str | None,
        Query(max_length=MOST, description="NAMESPACE/NAME, name or UID of a pod: the GPUs that it holds."),
    ] = None,
    job: Annotated[
        str | None, Query(max_length=MOST, description="Id of a Slurm job: the GPUs that it holds.")
    ] = None,
    workload: Annotated[
        str | None,
        Query(max_length=1000, description="A workload as by=workload names it: the GPUs that it holds."),
    ] = None,
) -> Response:
    """For schedulers and scripts: give one of gpu, host, pod, job, workload. Unknown, silent, starved and stuck are not idle."""
    found = answer(session, now, Asked(gpu, host, pod, job, workload))
    return JSONResponse(to_json(found), headers={"Cache-Control": "no-store"})
