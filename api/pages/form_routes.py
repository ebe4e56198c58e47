"""Routes of a page's plain forms: each does one thing, then the page says so; a refused one comes back as it was typed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from api.pages.forms import FormDep, FormState, errors_of
from api.pages.view import Address, View, ViewDep
from core.errors import GpuwiseError, UsageError

IdPath = Annotated[int, Path(ge=1, le=2**31 - 1)]
Fields = Mapping[str, str]
Act = Callable[[View, Fields], object]
RowAct = Callable[[View, int, Fields], object]


@dataclass(frozen=True, slots=True)
class FormRoutes:
    """The forms of one page.

    Attributes:
        router: takes their routes. path: of the page. draw: the page as HTML, with a form that came back.
        keeps: parameters of the page's address that stay when a form was taken.
        errors: a refusal and the form's fields → what is wrong, by field.
    """

    router: APIRouter
    path: str
    draw: Callable[[View, FormState], str]
    keeps: tuple[str, ...] = ()
    errors: Callable[[str, Fields], Mapping[str, str]] = errors_of

    def post(self, path: str, *, form: str, said: str) -> Callable[[Act], Act]:
        """Over a function that does what the form ``form`` asks; it raises ``UsageError`` for what it refuses.

        Args:
            path: below the page's. form: key of the form in the page's ``FormState``. said: key of the sentence that
                the page shows once it is done (``api.pages.frame.NOTICE``).
        """

        def register(act: Act) -> Act:
            def route(view: ViewDep, fields: FormDep) -> Response:
                return self.answer(view, form, fields, lambda: act(view, fields), said)

            self._register(path, act, route)
            return act

        return register

    def post_row(self, path: str, *, form: str, said: str) -> Callable[[RowAct], RowAct]:
        """The same for a form of one row: ``path`` holds ``{id_}``, ``form`` may."""

        def register(act: RowAct) -> RowAct:
            def route(view: ViewDep, id_: IdPath, fields: FormDep) -> Response:
                key = form.format(id_=id_)
                return self.answer(view, key, fields, lambda: act(view, id_, fields), said)

            self._register(path, act, route)
            return act

        return register

    def answer(self, view: View, form: str, fields: Fields, act: Callable[[], object], said: str) -> Response:
        """Take a form: on to the page that says so, or the form again with what is wrong."""
        try:
            act()
        except UsageError as error:
            return self.refused(view, form, fields, error)
        kept = {name: view.address.get(name) for name in self.keeps}
        return RedirectResponse(f"{Address(self.path).href(**kept, said=said)}#main", 303)

    def refused(self, view: View, form: str, fields: Fields, error: GpuwiseError) -> Response:
        """The page with what was typed and what is wrong with it; nothing is kept."""
        view.scope.session.rollback()
        state = FormState(form, dict(fields), self.errors(str(error), fields))
        return HTMLResponse(self.draw(view, state), 422)

    def _register(self, path: str, act: Callable[..., object], route: Callable[..., Response]) -> None:
        self.router.post(f"{self.path}/{path}", name=act.__name__, description=act.__doc__)(route)
