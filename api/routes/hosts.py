"""REST: hosts."""

from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from api.deps import ScopeDep, SessionDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import host_facts
from api.resources import hosts as resource
from api.resources.as_json import to_json
from api.resources.host_facts import HostFactsView, HostSays
from api.resources.hosts import HostRow
from api.text import Storable

router = APIRouter(prefix="/hosts", tags=["hosts"])

Fact = Annotated[Storable, Field(max_length=200)]
HostName = Annotated[Storable, Field(min_length=1, max_length=255)]


class HostBody(BaseModel):
    """What is said of a host; what is left out stays, null or empty removes."""

    model_config = ConfigDict(extra="forbid", strict=True)

    cluster: Fact | None = Field(None, description="Cluster or site it stands in.")
    instance_type: Fact | None = Field(None, description="As its provider calls it.")
    region: Fact | None = Field(
        None, description="Cloud region or place; resolves grid carbon where it is known."
    )
    labels: dict[Fact, Fact | None] = Field({}, description="Anything else, by name.", max_length=50)


class HostLine(BaseModel):
    """What is said of the hosts that a name or pattern means."""

    model_config = ConfigDict(extra="forbid", strict=True)

    host: HostName = Field(description="Name, * stands for anything.")
    facts: dict[Fact, Fact | None] = Field(
        description="By name: cluster, instance_type, region or a label.", max_length=50
    )


class HostLines(BaseModel):
    """What is said of many hosts: all or none."""

    model_config = ConfigDict(extra="forbid", strict=True)

    hosts: Annotated[list[HostLine], Field(max_length=100_000)]
    skip_unknown: bool = Field(False, description="Pass over names that no host has.")


@router.get("", response_model=Page[HostRow], responses=CSV_RESPONSE)
def list_hosts(scope: ScopeDep, listing: ListingDep) -> Response:
    """Hosts with what their GPUs do, how well they are seen and what they cost."""
    rows = resource.rows(scope)
    return listing.answer(rows, HostRow, ident=("host",), window=scope.window)


@router.patch("/{host}", response_model=list[HostFactsView])
def say_of_host(
    session: SessionDep,
    host: Annotated[Storable, Path(max_length=255, description="Name, * stands for anything.")],
    body: HostBody,
) -> Response:
    """Say what a host is. Days of the ledger that it changes are booked anew; answers the hosts that were meant."""
    own = body.model_dump(include=body.model_fields_set - {"labels"})
    return JSONResponse(to_json(host_facts.say(session, [HostSays(host, {**body.labels, **own})])))


@router.post("/facts", response_model=list[HostFactsView])
def say_of_hosts(session: SessionDep, body: HostLines) -> Response:
    """Say what many hosts are: all or none; answers the hosts that were meant."""
    said = [HostSays(line.host, line.facts) for line in body.hosts]
    return JSONResponse(to_json(host_facts.say(session, said, skip_unknown=body.skip_unknown)))
