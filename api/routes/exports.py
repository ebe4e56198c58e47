"""REST: files of the ledger for other systems, streamed."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from sqlalchemy.orm import Session

from api.deps import NowDep, SessionDep, SettingsDep
from api.resources.as_json import to_json
from api.resources.export_files import focus_file, line_file
from api.resources.exports import Export, Summary, export
from api.text import Storable
from core.settings import Settings
from ledger.focus import DEFAULT_ACCOUNT, DEFAULT_PROVIDER, Issuer
from store.engine import session_scope

router = APIRouter(prefix="/exports", tags=["exports"])

CSV_FILE: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The file.", "content": {"text/csv": {"schema": {"type": "string"}}}}
}
DAY: Final = "a day (2026-10-01) or month (2026-10) of the accounting time zone."
PROVIDER: Final = (
    "ProviderName, PublisherName and InvoiceIssuerName where no label provider of a host says so."
)


@dataclass(frozen=True, slots=True)
class Asked:
    """Days of a file, in whatever settings and at whatever time they are asked for."""

    settings: Settings
    now_ms: int
    from_: str
    to: str

    def export(self, session: Session, issuer: Issuer | None = None) -> Export:
        """The file of these days."""
        return export(session, self.settings, self.now_ms, self.from_, self.to, issuer=issuer)


def asked(
    settings: SettingsDep,
    now: NowDep,
    from_: Annotated[str, Query(alias="from", max_length=40, description=f"First day: {DAY}")],
    to: Annotated[str, Query(max_length=40, description=f"First day that is left out: {DAY}")],
) -> Asked:
    """Parameters of every file."""
    return Asked(settings, now, from_, to)


AskedDep = Annotated[Asked, Depends(asked)]


def issuer(
    account: Annotated[
        Storable, Query(min_length=1, max_length=200, description="BillingAccountId and BillingAccountName.")
    ] = DEFAULT_ACCOUNT,
    provider: Annotated[
        Storable, Query(min_length=1, max_length=200, description=PROVIDER)
    ] = DEFAULT_PROVIDER,
) -> Issuer:
    """Who bills."""
    return Issuer(account, provider)


@router.get("/focus", response_class=Response, responses=CSV_FILE)
def focus(request: Request, days: AskedDep, bills: Annotated[Issuer, Depends(issuer)]) -> Response:
    """Charges in the FinOps Open Cost and Usage Specification 1.2; the header Link names what to know of them."""
    summary = request.url.replace(path=f"{request.url.path}/summary")
    headers = {"Link": f'<{summary}>; rel="describedby"'}
    return _stream(request, "focus", headers, lambda session: focus_file(days.export(session, bills)))


@router.get("/focus/summary", response_model=Summary)
def focus_summary(session: SessionDep, days: AskedDep) -> Response:
    """What the file of these days holds, what has no price and is not in it, and what may still change."""
    made = days.export(session)
    for _ in made.rows():
        pass
    return JSONResponse(to_json(made.summary))


@router.get("/lines", response_class=Response, responses=CSV_FILE)
def lines(request: Request, days: AskedDep) -> Response:
    """The ledger's lines as CSV, those without a price among them."""
    return _stream(request, "ledger", {}, lambda session: line_file(days.export(session)))


def _stream(
    request: Request, name: str, headers: Mapping[str, str], start: Callable[[Session], Iterator[str]]
) -> Response:
    """A file as it is made. Its first piece is made before the answer begins, so that an error can still be one."""

    def pieces() -> Iterator[str]:
        # A session of its own: that of the request is closed before the answer leaves.
        with session_scope(request.app.state.engine) as session:
            yield from start(session)

    made = pieces()
    first = list(islice(made, 1))
    return StreamingResponse(
        chain(first, made),
        media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="gpuwise-{name}.csv"', **headers},
    )
