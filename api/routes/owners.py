"""REST: owners and the rules that say whose GPU time is."""

from typing import Annotated, Any

from fastapi import APIRouter, Path
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from api.deps import NowDep, ScopeDep, SessionDep, SettingsDep
from api.paging import CSV_RESPONSE, ListingDep, Page
from api.resources import owner_claims, owners
from api.resources.as_json import to_json
from api.resources.owner_claims import DryRun, OwnerRow
from api.resources.owner_specs import RuleSpec, rule_of
from api.resources.owners import RuleView
from api.text import Storable

router = APIRouter(prefix="/owners", tags=["owners"])

RuleId = Annotated[int, Path(ge=1, le=2**31 - 1, description="The rule's id.")]
Position = Annotated[int, Field(ge=1, le=1_000_000)]
Pattern = Annotated[Storable, Field(max_length=200)]
Name = Annotated[Storable, Field(max_length=200)]
Labels = Annotated[list[Storable], Field(max_length=50)]
Time = Annotated[str, Field(max_length=40)]


class RuleBody(BaseModel):
    """An owner rule. Patterns take ``*``, ``?`` and ``[abc]``; every condition that is given must hold."""

    model_config = ConfigDict(extra="forbid", strict=True)

    team: Name = Field(description="Who pays.")
    project: Name = Field("", description="Of the team.")
    cost_centre: Name = Field("", description="That is charged.")
    user: Pattern | None = Field(None, description="Of the workload.")
    namespace: Pattern | None = Field(None, description="Kubernetes namespace.")
    slurm_account: Pattern | None = Field(None, description="Slurm account.")
    unit: Pattern | None = Field(None, description="systemd unit.")
    image: Pattern | None = Field(None, description="Image the workload runs from, where it is known.")
    kind: Pattern | None = Field(
        None, description="process, container, pod, slurm_job, systemd_unit or engine."
    )
    labels: Labels = Field([], description="NAME=PATTERN of the workload's attributes, or of its name.")
    host: Pattern | None = Field(None, description="Host of the GPU.")
    host_labels: Labels = Field(
        [], description="NAME=PATTERN of the host: cluster, instance_type, region or a label."
    )
    valid_from: Time | None = Field(
        None, description="In force from: a time, or a day in the accounting time zone. Default: since ever."
    )
    valid_to: Time | None = Field(None, description="In force until; default: still.")
    note: Annotated[Storable, Field(max_length=2_000)] = Field("", description="In your own words.")
    catch_all: bool = Field(False, description="It is meant to match everything.")


class PlacedRuleBody(RuleBody):
    """An owner rule and where it goes."""

    position: Position | None = Field(None, description="Its place, 1 is asked first; default: last.")


class RuleChange(BaseModel):
    """What to correct of a rule, for all of its time; what is left out stays."""

    model_config = ConfigDict(extra="forbid", strict=True)

    team: Name = Field("", description="Who pays.")
    project: Name = Field("", description="Of the team.")
    cost_centre: Name = Field("", description="That is charged.")
    user: Pattern | None = Field(None, description="Null: not asked any more; so for all conditions.")
    namespace: Pattern | None = None
    slurm_account: Pattern | None = None
    unit: Pattern | None = None
    image: Pattern | None = None
    kind: Pattern | None = None
    labels: Labels = []
    host: Pattern | None = None
    host_labels: Labels = []
    valid_from: Time | None = Field(None, description="Null: since ever.")
    valid_to: Time | None = Field(None, description="Null: it does not end.")
    note: Annotated[Storable, Field(max_length=2_000)] = ""
    catch_all: bool = Field(False, description="It is meant to match everything.")
    position: Position | None = Field(None, description="Move it to this place, 1 is asked first.")


class OwnerBody(BaseModel):
    """Who takes over, and when."""

    model_config = ConfigDict(extra="forbid", strict=True)

    team: Name = Field(description="Who pays from then on.")
    project: Name = Field("", description="Of the team.")
    cost_centre: Name = Field("", description="That is charged.")
    on: Time = Field(description="From when: a time, or a day in the accounting time zone.")


class RenameBody(BaseModel):
    """A team's new name or cost centre, and when."""

    model_config = ConfigDict(extra="forbid", strict=True)

    team: Name = Field(description="The team as its rules name it now.")
    to_team: Name | None = Field(None, description="Its new name; default: it keeps its name.")
    to_cost_centre: Name | None = Field(None, description="Its new cost centre; default: as it is.")
    on: Time = Field(description="From when: a time, or a day in the accounting time zone.")


class ImportBody(BaseModel):
    """Many rules at once: all or none."""

    model_config = ConfigDict(extra="forbid", strict=True)

    rules: Annotated[list[RuleBody], Field(max_length=10_000)] = Field(
        description="In their order, after those there are."
    )
    replace: bool = Field(False, description="In the stead of all rules there are.")


def _spec(body: RuleBody) -> RuleSpec:
    return RuleSpec(**_given(body, set(RuleBody.model_fields)))


def _given(body: BaseModel, names: set[str]) -> dict[str, Any]:
    given = body.model_dump(include=names)
    return {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}


@router.get("", response_model=Page[OwnerRow], responses=CSV_RESPONSE)
def list_owners(scope: ScopeDep, listing: ListingDep) -> Response:
    """Owners with the GPU-hours that their rules claim; the row without a team is what nobody owns."""
    rows = owner_claims.rows(scope)
    return listing.answer(
        rows, OwnerRow, ident=("team", "project", "cost_centre", "label"), window=scope.window
    )


@router.get("/rules", response_model=Page[RuleView], responses=CSV_RESPONSE)
def list_rules(session: SessionDep, now: NowDep, listing: ListingDep) -> Response:
    """Rules in their order: the first that fits wins. As CSV they can be imported again."""
    return listing.answer(owners.rows(session, now), RuleView, ident=("id",), window=None)


@router.post("/rules", response_model=RuleView, status_code=201)
def add_rule(session: SessionDep, settings: SettingsDep, now: NowDep, body: PlacedRuleBody) -> Response:
    """Keep a rule. Days it touches are booked anew; usage stays as it is."""
    made = owners.add(session, settings, now, _spec(body), body.position)
    return JSONResponse(to_json(made), 201)


@router.patch("/rules/{id_}", response_model=RuleView)
def change_rule(
    session: SessionDep, settings: SettingsDep, now: NowDep, id_: RuleId, body: RuleChange
) -> Response:
    """Correct, move or end a rule. For another owner from a day on, hand it over."""
    changes = _given(body, body.model_fields_set - {"position"})
    changed = owners.change(session, settings, now, id_, changes, position=body.position)
    return JSONResponse(to_json(changed))


@router.post("/rules/{id_}/hand-over", response_model=RuleView)
def hand_over_rule(
    session: SessionDep, settings: SettingsDep, now: NowDep, id_: RuleId, body: OwnerBody
) -> Response:
    """Let another owner have what a rule claims from a day on; answers the rule that holds from then."""
    to = RuleSpec(body.team, body.project, body.cost_centre)
    return JSONResponse(to_json(owners.hand_over(session, settings, now, id_, to=to, on=body.on)))


@router.delete("/rules/{id_}", status_code=204)
def remove_rule(session: SessionDep, id_: RuleId) -> Response:
    """Remove a rule, as if it had never been; to let it end, give it valid_to."""
    owners.remove(session, id_)
    return Response(status_code=204)


@router.post("/import", response_model=list[RuleView], status_code=201)
def import_rules(session: SessionDep, settings: SettingsDep, now: NowDep, body: ImportBody) -> Response:
    """Keep many rules: all or none."""
    specs = [_spec(one) for one in body.rules]
    made = owners.import_rules(session, settings, now, specs, replace_all=body.replace)
    return JSONResponse(to_json(made), 201)


@router.post("/rename", response_model=list[RuleView])
def rename_team(session: SessionDep, settings: SettingsDep, now: NowDep, body: RenameBody) -> Response:
    """Rename a team or move it to another cost centre from a day on, in all of its rules."""
    made = owners.rename(
        session,
        settings,
        now,
        body.team,
        body.on,
        to_team=body.to_team,
        to_cost_centre=body.to_cost_centre,
    )
    return JSONResponse(to_json(made))


@router.post("/dry-run", response_model=DryRun)
def dry_run(scope: ScopeDep, body: PlacedRuleBody) -> Response:
    """What a rule would claim of the window, from whom, and what stays unowned. Nothing is kept."""
    rule = rule_of(_spec(body), scope.settings, scope.now_ms)
    return JSONResponse(to_json(owner_claims.dry_run(scope, rule, body.position)))


@router.get("/rules/{id_}/dry-run", response_model=DryRun)
def dry_run_stored(scope: ScopeDep, id_: RuleId) -> Response:
    """What a stored rule claims of the window, compared with its absence."""
    return JSONResponse(to_json(owner_claims.dry_run_of_stored(scope, id_)))
