"""REST: size a model. It changes nothing; POST only carries the inputs."""

from typing import Annotated, Any

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, ConfigDict, Field

from api.deps import NowDep, SessionDep, SettingsDep
from api.resources.as_json import to_json
from api.resources.plan_size import SizeAnswer, plan_size
from api.resources.plan_size_inputs import SizeInputs

router = APIRouter(prefix="/plan", tags=["plan"])

Name = Annotated[str, Field(max_length=200)]
Figure = Annotated[float, Field(allow_inf_nan=False)]


class SizeBody(BaseModel):
    """Inputs by the names of the command line; what is left out is assumed, and said in ``asked.assumed``."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: Name | None = Field(None, description="Name of an open model; or give its config.")
    config: dict[str, Any] | None = Field(None, description="The model's own config.json.")
    precision: Name | None = Field(
        None, description="Of the weights: bf16, fp8, int8, int4, … Default: as published."
    )
    kv_precision: Name | None = Field(None, description="Of the KV cache: auto (16 bits), fp8, int8.")
    context_tokens: int | None = Field(None, description="Prompt and output of one request together.")
    output_tokens: int | None = Field(None, description="Of these, generated.")
    concurrency: int | None = Field(None, description="Requests at once; or give requests_per_s.")
    requests_per_s: Figure | None = Field(None, description="Requests that arrive.")
    itl_slo_ms: Figure | None = Field(None, description="Longest mean time between tokens, milliseconds.")
    ttft_slo_ms: Figure | None = Field(None, description="Longest time to the first token, milliseconds.")
    gpu: Annotated[list[Name], Field(max_length=200)] = Field(
        default_factory=list, description="Keys of GPU models. Default: all of the catalogue."
    )
    sort: Name = Field("hour", description="Cheapest first per hour, or per generated token: hour, token.")


@router.post("/size", response_model=SizeAnswer)
def post_size(session: SessionDep, settings: SettingsDep, now: NowDep, body: SizeBody) -> Response:
    """Size a model: memory, GPUs, speed, energy and money on every GPU model, cheapest first."""
    return JSONResponse(to_json(plan_size(session, settings, now, SizeInputs(**body.model_dump()))))
