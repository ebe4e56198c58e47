"""Settings › Agents' tokens: who may deliver, when each was last used; made here and shown once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from api.pages.form_routes import Fields, FormRoutes
from api.pages.forms import NO_FORM, FormDep, FormState, given, whole_number
from api.pages.frame import Frame, build_frame
from api.pages.view import View, ViewDep
from api.resources import tokens as resource
from api.templating import render
from core.errors import UsageError
from store.known import known_gpus
from store.queries import tokens
from store.queries.tokens import TokenRecord

router = APIRouter(include_in_schema=False)
PAGE: Final = "/settings/tokens"
TEMPLATE: Final = "pages/settings_tokens.html"
MOST_KNOWN: Final = 500
ONCE: Final = {"Cache-Control": "no-store"}
"""No browser and no proxy keeps the one answer that holds a token."""


@dataclass(frozen=True, slots=True)
class TokenLine:
    """A token as people read it."""

    row: TokenRecord
    state: str
    is_valid: bool


@dataclass(frozen=True, slots=True)
class Made:
    """A new token, which no later page can show; it prints itself nowhere but in the template."""

    token: str
    row: TokenRecord

    def __repr__(self) -> str:
        """Keep it out of logs and tracebacks."""
        return f"Made({self.row.prefix}…)"


@dataclass(frozen=True, slots=True)
class TokensPage:
    """Everything the page prints. ``base_url``: where agents find this server."""

    frame: Frame
    headline: str
    lines: tuple[TokenLine, ...]
    hosts: tuple[str, ...]
    form: FormState
    made: Made | None
    base_url: str


def page_of(
    frame: Frame,
    records: Sequence[TokenRecord],
    *,
    hosts: Sequence[str] = (),
    form: FormState = NO_FORM,
    made: Made | None = None,
    base_url: str = "",
) -> TokensPage:
    """The page from what was read and typed; pure."""
    lines = [TokenLine(row, state_of(row, frame.now_ms), row.valid_at(frame.now_ms)) for row in records]
    return TokensPage(
        frame=frame,
        headline=headline(lines),
        lines=tuple(sorted(lines, key=lambda line: (not line.is_valid, -line.row.id))),
        hosts=tuple(hosts),
        form=form,
        made=made,
        base_url=base_url,
    )


def headline(lines: Sequence[TokenLine]) -> str:
    """Who may deliver, in a sentence."""
    valid = [line for line in lines if line.is_valid]
    if not valid:
        return "No agent may deliver over the network: there is no token in force"
    text = f"{len(valid)} token{'s' if len(valid) != 1 else ''} in force"
    idle = sum(line.row.last_used_ms is None for line in valid)
    return (
        f"{text}; {idle} {'was' if idle == 1 else 'were'} never used" if idle else f"{text}, every one used"
    )


def state_of(row: TokenRecord, now_ms: int) -> str:
    """Whether it opens anything."""
    if row.revoked_ms is not None:
        return "revoked"
    return "in force" if row.valid_at(now_ms) else "expired"


def build_tokens(view: View, form: FormState = NO_FORM, made: Made | None = None) -> TokensPage:
    """The page as it stands."""
    scope = view.scope
    known = known_gpus(scope.session.connection())
    hosts = sorted({gpu.identity.host for gpu in known if gpu.identity.host is not None})
    return page_of(
        build_frame(view, active="settings", title="Agents’ tokens", window_text=""),
        tokens.listing(scope.session),
        hosts=hosts[:MOST_KNOWN],
        form=form,
        made=made,
        base_url=scope.settings.base_url.rstrip("/"),
    )


def create(view: View, fields: Mapping[str, str]) -> Made:
    """The token that a form asks for. Raises ``UsageError``."""
    typed = given(fields, ("host", "name"))
    any_host = fields.get("whose") == "any"
    if not any_host and "host" not in typed:
        raise UsageError("host is empty: name the host as its agent does, or choose any host")
    days = whole_number(fields, "expires_days", "365")
    if days is not None and not 1 <= days <= resource.MOST_DAYS:
        raise UsageError(f"expires_days is {days}: give 1 to {resource.MOST_DAYS:,}, or nothing")
    token, row = resource.create(
        view.scope.session,
        host=None if any_host else typed["host"],
        name=typed.get("name", ""),
        expires_days=days,
        now_ms=view.scope.now_ms,
    )
    return Made(token, row)


FORMS: Final = FormRoutes(router, PAGE, lambda view, form: render(TEMPLATE, build_tokens(view, form)))


@router.get(PAGE, response_class=HTMLResponse)
def tokens_page(view: ViewDep) -> str:
    """The page as HTML."""
    return render(TEMPLATE, build_tokens(view))


@router.post(f"{PAGE}/create")
def create_token(view: ViewDep, fields: FormDep) -> Response:
    """Make a token and show it: in this answer alone, so that it stands in no address and no later page."""
    try:
        made = create(view, fields)
    except UsageError as error:
        return FORMS.refused(view, "create", fields, error)
    return HTMLResponse(render(TEMPLATE, build_tokens(view, made=made)), headers=ONCE)


@FORMS.post_row("{id_}/revoke", form="list", said="revoked")
def revoke_token(view: View, id_: int, _fields: Fields) -> None:
    """Refuse a token from now on."""
    resource.revoke(view.scope.session, str(id_), now_ms=view.scope.now_ms)
