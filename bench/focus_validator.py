"""The FinOps Foundation's focus-validator on a file with rows of every kind: ``python -m bench.focus_validator``.

It needs Python 3.12 or newer and looks for its rules under the folder it is started in; it exits 0 also when rules
failed, so what it prints is read. Without such a Python, or where the package cannot be installed, the step is skipped
and says so: our own check (``gpuwise export focus --check``) is in the tests.
"""

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from sqlalchemy import text

from api.resources import owners
from api.resources.export_files import focus_file
from api.resources.exports import Summary, export
from api.resources.ledger_days import materialise
from api.resources.ledger_months import close
from api.resources.owner_specs import RuleSpec
from bench.databases import sqlite
from bench.ledger import START_MS, build_fleet
from core.settings import Settings
from core.units import DAY_MS, HOUR_MS
from core.user_price import UserPrice
from store.engine import make_engine, session_scope
from store.queries import ledger_pending, prices

PYTHONS: Final = ("python3.14", "python3.13", "python3.12", "python3")
PACKAGES: Final = ("focus-validator==2.2.1", "pyarrow<19")
SUPPORTED: Final = (
    *("ACCOUNT_NAMING_SUPPORTED", "COMMITMENT_DISCOUNT_SUPPORTED", "MULTIPLE_PRICING_CATEGORIES_SUPPORTED"),
    *("MULTIPLE_SUB_ACCOUNT_TYPES_SUPPORTED", "NEGOTIATED_PRICING_SUPPORTED", "PUBLIC_PRICE_LIST_SUPPORTED"),
    *("USAGE_MEASUREMENT_SUPPORTED", "UNIT_PRICING_SUPPORTED", "SUB_ACCOUNT_SUPPORTED", "REGION_SUPPORTED"),
    *("BILLING_BASED_ON_PROVISIONED_RESOURCES_SUPPORTED", "RESOURCE_TYPE_ASSIGNMENT_SUPPORTED"),
    *("PRICING_BILLING_CURRENCY_DIFFERENCES_SUPPORTED", "TAGGING_SUPPORTED"),
)
"""What our files can say: no availability zones, no types of billing accounts, no reservations of capacity alone."""
ITS_OWN: Final = {
    "CommitmentDiscountStatus-C-004-C": "its condition is reversed: it asks for a status where there is no commitment",
    "InvoiceId-C-005-C": "it asks for an invoice on every row, also where none was issued",
}
"""Rules of model 1.2.0.1 that are not what FOCUS 1.2 says, and how."""
_FAILED: Final = re.compile(r"^❌ (\S+): FAIL +\((.*)\)\s*$", re.MULTILINE)
_PARENT: Final = "failed child rules"
_TOTAL: Final = re.compile(r"^Total: .*Pass: (\d+) .*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the validator said: how many rules passed, and of those that failed what it printed, by rule."""

    passed: int
    failed: dict[str, str]

    @property
    def ours(self) -> dict[str, str]:
        """Failures that are not the validator's own; a rule that fails by its children alone is not counted."""
        return {
            rule: said for rule, said in self.failed.items() if rule not in ITS_OWN and _PARENT not in said
        }


def read_verdict(printed: str) -> Verdict:
    """The verdict in what it printed.

    Raises:
        ValueError: there is none.
    """
    total = _TOTAL.search(printed)
    if total is None:
        raise ValueError(f"focus-validator printed no result: {printed[-500:]}")
    return Verdict(int(total[1]), dict(_FAILED.findall(printed)))


def write_sample(file: Path) -> Summary:
    """A file with rows of every kind, from a small fleet."""
    with sqlite() as url:
        settings = Settings(database_url=url, tariff_usd_per_kwh=0.12, grid_code="DEU", pays_for_power=True)
        engine, later_ms = make_engine(url), START_MS + 31 * DAY_MS
        build_fleet(url, 48, 2)
        with session_scope(engine) as session:
            prices.insert_all(session, _prices())
            rule = RuleSpec(team="research", cost_centre="cc-1", namespace="team-1")
            owners.add(session, settings, later_ms, rule)
            for statement in _CHANGES:
                session.execute(text(statement))
            ledger_pending.mark(session, 0, None)
        materialise(engine, settings, later_ms)
        with session_scope(engine) as session:
            close(session, settings, later_ms, "2026-11")
            prices.insert_all(session, [_price("host", "node-00002", "2.10", valid_from_ms=START_MS)])
            ledger_pending.mark(session, 0, None)
        materialise(engine, settings, later_ms)
        with session_scope(engine) as session, file.open("w", encoding="utf-8", newline="") as out:
            made = export(session, settings, later_ms, "2026-11", "2026-12")
            out.writelines(focus_file(made))
        return made.summary


_SLICE: Final = "id, gpu_uuid, host_id, gpu_index, model, memory_total_bytes, first_sample_ms, seen_until_ms"
_USE: Final = "hour_ms, workload_id, allocated_s, active_s, effective_s, share_method"
_CHANGES: Final = (
    """UPDATE host SET region = 'eu-central-1', cluster = 'north', instance_type = 'p5.48xlarge',
    labels = '{"provider": "aws", "pool": "train", "spare": ""}' WHERE id = 1""",
    f"""INSERT INTO gpu ({_SLICE}) SELECT 9001, 'MIG-1', host_id, gpu_index, model || ' MIG 3g.40gb',
    memory_total_bytes, first_sample_ms, seen_until_ms FROM gpu WHERE id = 10""",
    f"INSERT INTO usage_hour (gpu_id, {_USE}) SELECT 9001, {_USE} FROM usage_hour WHERE gpu_id = 10",
)
"""A host in a cloud region, and a card of which one slice has all the work."""


def _prices() -> list[UserPrice]:
    year_ms = 365 * DAY_MS
    return [
        _price(
            *("host", "node-00001", "0.50"),
            billing="committed",
            commitment="cud-7",
            committed_gpus=12,
            upfront=Decimal(100_000),
            valid_from_ms=START_MS,
            valid_to_ms=START_MS + year_ms,
        ),
        _price("host", "node-00003", "1.35", billing="spot"),
        _price("host", "node-00004", "1.88", billing="owned"),
        _price("host", "node-00005", "0.00", billing="owned"),
        _price("host", "node-00006", "2.20", billing="reserved", valid_from_ms=START_MS + 5 * HOUR_MS),
    ]


def _price(scope: str, value: str, usd: str, **more: Any) -> UserPrice:
    given = {"id": 0, "billing": "on_demand", "gpus_per_unit": 8, "valid_from_ms": 0} | more
    return UserPrice(scope_kind=scope, scope_value=value, amount_per_gpu_hour=Decimal(usd), **given)


def newer_python() -> str | None:
    """A Python of 3.12 or newer that starts; None: there is none."""
    for name in PYTHONS:
        found = shutil.which(name)
        check = "import sys, venv; sys.exit(sys.version_info < (3, 12))"
        if found is not None and _run([found, "-c", check]).returncode == 0:
            return found
    return None


@contextmanager
def installed(python: str) -> Iterator[Path | None]:
    """An environment of its own with the validator; None: it cannot be installed here."""
    with TemporaryDirectory(prefix="gpuwise-focus-") as folder:
        place = Path(folder)
        made = _run([python, "-m", "venv", str(place)])
        pip = [
            str(place / "bin" / "python"),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
        ]
        if made.returncode == 0 and _run([*pip, *PACKAGES]).returncode == 0:
            yield place
        else:
            yield None


def validate(place: Path, file: Path) -> Verdict:
    """What the validator in an environment says of a file."""
    (packages,) = place.glob("lib/python3.*/site-packages")
    words = [
        str(place / "bin" / "focus-validator"),
        *("--data-file", str(file.resolve())),
        *("--validate-version", "1.2", "--block-download", "--focus-dataset", "CostAndUsage"),
        *("--applicability-criteria", ",".join(SUPPORTED)),
    ]
    # It opens focus_validator/rules/… relative to where it was started.
    return read_verdict(_run(words, packages).stdout)


def _run(words: Sequence[str], folder: Path | None = None) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.focus_validator", description=__doc__)
    parser.add_argument("--file", type=Path, help="a file to validate instead of a sample")
    parser.add_argument("--environment", type=Path, help="where focus-validator is installed already")
    asked = parser.parse_args()
    python = newer_python()
    if python is None and asked.environment is None:
        print("focus-validator: skipped, there is no Python 3.12 or newer here")
        return 0
    with TemporaryDirectory(prefix="gpuwise-focus-") as folder:
        file = asked.file or Path(folder) / "focus.csv"
        if asked.file is None:
            print(f"focus-validator: a sample of {write_sample(file).rows} rows")
        if asked.environment is not None:
            return _say(validate(asked.environment, file))
        with installed(python or sys.executable) as place:
            if place is None:
                print(f"focus-validator: skipped, {', '.join(PACKAGES)} cannot be installed for {python}")
                return 0
            return _say(validate(place, file))


def _say(verdict: Verdict) -> int:
    for rule, said in verdict.ours.items():
        print(f"focus-validator: {rule}: {said}")
    for rule in sorted(verdict.failed.keys() & ITS_OWN.keys()):
        print(f"focus-validator: passed over {rule}: {ITS_OWN[rule]}")
    print(f"focus-validator: {verdict.passed} rules passed, {len(verdict.ours)} failed")
    return 1 if verdict.ours else 0


if __name__ == "__main__":
    sys.exit(main())
