"""One good charge, of which tests change a field."""

from decimal import Decimal

from core.evidence import Price
from core.ownership import Owner
from core.place import Place
from core.readings import WorkloadKey
from core.units import HOUR_MS
from ledger.focus import Amounts, Charge, Resource

DAY_MS = 1_791_158_400_000  # 2026-10-05T00:00:00Z
PRICE = Price(
    usd_per_gpu_hour=Decimal("2.69"),
    basis="your price",
    billing="on_demand",
    gpus_per_unit=8,
    as_of="2026-10-01",
    from_user=True,
    price_id=7,
    list_usd_per_gpu_hour=Decimal("3.365"),
)
PLACE = Place(
    site="north",
    usd_per_kwh=Decimal("0.12"),
    tariff="flat 0.12",
    is_time_of_use=False,
    pue=1.3,
    host_share_ratio=0.3,
    host_share_method="setting",
    carbon_g_per_kwh=300.0,
    carbon_code="DEU",
    carbon_year=2024,
    carbon_method="life-cycle",
    pays_for_power=False,
)
RESOURCE = Resource(
    resource_id="GPU-1",
    name="h1/gpu0",
    sku="H100-SXM5-80GB",
    model="NVIDIA H100 80GB HBM3",
    host="h1",
    region="eu-central-1",
    region_name="Frankfurt",
    instance_type="p5.48xlarge",
    labels={"pool": "train", "blue": ""},
)
AMOUNTS = Amounts(
    share_method="whole",
    known_ms=10 * HOUR_MS,
    covered_ms=10 * HOUR_MS,
    allocated_ms=10 * HOUR_MS,
    active_ms=8 * HOUR_MS,
    effective_ms=6 * HOUR_MS,
    effective_unknown_ms=0,
    energy_mj=18_000_000_000,
    energy_method="counter",
    site_energy_mj=30_420_000_000,
    cost_usd=26_900_000,
    idle_cost_usd=5_380_000,
    energy_usd=1_014_000,
    billed_energy_usd=None,
    carbon_ug=2_535_000_000,
)
CHARGE = Charge(
    from_ms=DAY_MS,
    to_ms=DAY_MS + 24 * HOUR_MS,
    resource=RESOURCE,
    kind="workload",
    workload=WorkloadKey(
        "pod", "ml/train-0", "train-0", user="ann", host="h1", attributes=(("namespace", "ml"),)
    ),
    owner=Owner("research", "llm", "cc-12"),
    price=PRICE,
    invoiced=None,
    place=PLACE,
    amounts=AMOUNTS,
    correction=None,
)
