"""Flags of the calculators from the fields of their bodies: names, help and types are said once, in ``plan_bodies``."""

from collections.abc import Callable
from enum import Enum
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_origin

import click
from pydantic import BaseModel

from gpuwise.commands.options import Source, open_session

F = TypeVar("F", bound=Callable[..., Any])


def input_options(body: type[BaseModel]) -> Callable[[F], F]:
    """Add a flag for each field: ``capex_usd`` is ``--capex-usd``."""

    def with_options(command: F) -> F:
        for name, field in reversed(body.model_fields.items()):
            flag = f"--{name.replace('_', '-')}"
            kind = _kind(field.annotation)
            settings: dict[str, Any] = {"help": field.description, "default": None}
            if kind is bool:
                settings["is_flag"] = True
                flag = f"{flag}/--no-{name.replace('_', '-')}" if field.default is None else flag
            elif issubclass(kind, Enum):
                settings |= {
                    "type": click.Choice([one.value for one in kind]),
                    "default": field.default.value,
                }
                settings["show_default"] = True
            else:
                settings |= {"type": kind, "metavar": {str: "NAME", int: "N"}.get(kind, "X")}
            command = click.option(flag, name, **settings)(command)
        return command

    return with_options


def _kind(annotation: Any) -> type:
    """The plain type of ``X | None``, ``Annotated[X, …]`` or ``X``."""
    if get_origin(annotation) is Annotated:
        return _kind(get_args(annotation)[0])
    parts = [part for part in get_args(annotation) if part is not NoneType]
    if parts:
        return _kind(parts[0])
    assert isinstance(annotation, type)
    return annotation


def ask(
    source: Source,
    path: str,
    answer: Callable[..., Any],
    window: dict[str, str | None],
    given: dict[str, Any],
) -> Any:
    """What a calculator says, as JSON: asked of the database, or of a server's ``path``.

    Args:
        source: where.
        path: under ``/api/v1``.
        answer: ``answer(scope, given, gpu_model=…, host=…, wanted=…, assume_measured=…)`` of the resource.
        window: ``since`` and ``until``.
        given: inputs by name.
    """
    known = {name: value for name, value in given.items() if value is not None}
    if source.server is not None:
        from urllib.parse import urlencode

        from gpuwise.commands.remote import send

        query = urlencode({name: value for name, value in window.items() if value is not None})
        return send(source.server, f"{path}?{query}" if query else path, known)
    from api.resources.as_json import to_json
    from api.resources.plan_measured import Wanted, plan_scope
    from core.clock import now_ms

    chosen = {
        "gpu_model": known.pop("gpu_model", None),
        "host": known.pop("host", None),
        "wanted": Wanted(known.pop("wanted")),
        "assume_measured": known.pop("assume_measured", False),
    }
    with open_session(source.settings) as session:
        scope = plan_scope(session, source.settings, now_ms(), window["since"], window["until"])
        return to_json(answer(scope, known, **chosen))
