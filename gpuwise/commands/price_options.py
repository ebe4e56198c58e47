"""Flags of ``gpuwise prices add``: what a price is for and what it consists of, as a body of the REST API."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import click

from api.resources.price_specs import OwnedBody, SpotBody
from core.errors import UsageError
from core.user_price import BILLINGS, Scope

SCOPES: Final = {
    Scope.GPU: ("--gpu", "UUID", "One GPU."),
    Scope.HOST: ("--host", "NAME", "The GPUs of a host."),
    Scope.LABEL: ("--label", "KEY=VALUE", "Hosts with that label."),
    Scope.INSTANCE_TYPE: ("--instance-type", "NAME", "Hosts of that instance type."),
    Scope.CLUSTER: ("--cluster", "NAME", "Hosts of that cluster."),
    Scope.MODEL: ("--model", "NAME", "A product name of the driver, or a key of our GPU catalogue."),
}
SWITCHES: Final = ("colo_includes_power", "includes_energy")
OWNED: Final = tuple(OwnedBody.model_fields)
SPOT: Final = tuple(SpotBody.model_fields)


def price_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what a price consists of."""
    for model in (SpotBody, OwnedBody):
        for name, field in reversed(model.model_fields.items()):
            flag, billing = name.replace("_", "-"), model.__name__.removesuffix("Body").lower()
            help_ = f"{billing.capitalize()}: {field.description}"
            if not field.is_required() and field.default is not None and name not in SWITCHES:
                help_ += f" [{field.default:,.15g}]"
            if name in SWITCHES:
                option = click.option(f"--{flag}/--no-{flag}", name, default=None, help=help_)
            else:
                kind = int if name == "gpu_count" else float
                option = click.option(f"--{flag}", name, type=kind, metavar="X", help=help_)
            command = option(command)
    for option in (
        click.option("--note", metavar="TEXT", help="In your own words."),
        click.option("--upfront", metavar="X", help="Paid at its start for all its GPUs and hours."),
        click.option("--committed-gpus", type=int, metavar="N", help="GPUs of the commitment."),
        click.option("--commitment", metavar="NAME", help="Reservation it belongs to."),
        click.option("--to", "valid_to", metavar="T", help="In force until; default: still."),
        click.option("--from", "valid_from", metavar="T", help="In force from a day or time; default: ever."),
        click.option(
            "--gpus-per-unit", type=int, metavar="N", help="Released together; default: all of a host."
        ),
        click.option(
            "--billing",
            type=click.Choice(BILLINGS),
            help="Default: on_demand, or owned and spot where such inputs are given.",
        ),
        click.option(
            "--currency", metavar="CODE", help="ISO 4217; other than USD needs a rate. Default: USD."
        ),
        click.option("--amount-per-gpu-hour", metavar="X", help="The same in --currency."),
        click.option("--usd-per-gpu-hour", metavar="X", help="Dollars of one GPU-hour."),
        click.option("--all", "all_", is_flag=True, help="Whatever has no price of its own."),
        *(
            click.option(flag, scope.value, metavar=metavar, help=help_)
            for scope, (flag, metavar, help_) in reversed(SCOPES.items())
        ),
    ):
        command = option(command)
    return command


def body_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The flags that were given, as the REST API takes them.

    Raises:
        UsageError: what it is for is not said, or twice.
    """
    known = {name: value for name, value in given.items() if value is not None}
    scopes = {scope: known.pop(scope.value) for scope in SCOPES if scope.value in known}
    if known.pop("all_", False):
        scopes[Scope.ALL] = ""
    if len(scopes) != 1:
        flags = ", ".join(flag for flag, _, _ in SCOPES.values())
        raise UsageError(f"say what the price is for, with exactly one of {flags}, --all")
    ((scope, value),) = scopes.items()
    body = {"scope_kind": scope.value, "scope_value": value}
    for nested, names in (("owned", OWNED), ("spot", SPOT)):
        inputs = {name: known.pop(name) for name in names if name in known}
        if inputs:
            body[nested] = inputs
            known.setdefault("billing", nested)
    return body | known
