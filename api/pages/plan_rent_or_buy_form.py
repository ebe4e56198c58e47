"""What rent or buy asks: the fields of its form, by group and by name."""

from typing import Final

from api.pages.plan_fields import Kind, Spec
from api.pages.plan_form import MACHINE, RENT, RUNNING

USE: Final = (
    Spec("utilisation", "Wanted", "% of all hours", Kind.PERCENT),
    Spec("utilisation_p25", "Wanted on slow days", "% of all hours", Kind.PERCENT),
    Spec("utilisation_p75", "Wanted on busy days", "% of all hours", Kind.PERCENT),
)
GROUPS: Final = (
    ("The machine", MACHINE, True),
    ("Rent and use", (RENT, *USE), True),
    ("What it takes to run", RUNNING, False),
)
SPECS: Final = tuple(spec for _, specs, _ in GROUPS for spec in specs)
BY_NAME: Final = {spec.name: spec for spec in SPECS}
