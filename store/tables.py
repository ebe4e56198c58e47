"""All tables in one place: importing this module fills the metadata that migrations and tests compare."""

from typing import Final

from store.models.alert import AlertRow
from store.models.alert_told import AlertToldRow
from store.models.api_token import ApiTokenRow
from store.models.base import Base
from store.models.budget import BudgetRow
from store.models.day_pending import DayPendingRow
from store.models.demand_day import DemandDayRow
from store.models.demand_hour import DemandHourRow
from store.models.engine import EngineRow
from store.models.engine_day import EngineDayRow
from store.models.engine_hour import EngineHourRow
from store.models.engine_sample import EngineSampleRow
from store.models.exchange_rate import ExchangeRateRow
from store.models.gpu import GpuRow
from store.models.gpu_day import GpuDayRow
from store.models.gpu_event import GpuEventRow
from store.models.gpu_hour import GpuHourRow
from store.models.gpu_sample import GpuSampleRow
from store.models.gpu_week import GpuWeekRow
from store.models.host import HostRow
from store.models.host_day import HostDayRow
from store.models.host_hour import HostHourRow
from store.models.host_sample import HostSampleRow
from store.models.host_share import HostShareRow
from store.models.job_run import JobRunRow
from store.models.ledger_booking import LedgerBookingRow
from store.models.ledger_day import LedgerDayRow
from store.models.ledger_engine_day import LedgerEngineDayRow
from store.models.ledger_engine_set import LedgerEngineSetRow
from store.models.ledger_engine_week import LedgerEngineWeekRow
from store.models.ledger_gpu_total import LedgerGpuTotalRow
from store.models.ledger_month import LedgerMonthRow
from store.models.ledger_pending import LedgerPendingRow
from store.models.ledger_place import LedgerPlaceRow
from store.models.ledger_rate import LedgerRateRow
from store.models.ledger_total import LedgerTotalRow
from store.models.ledger_total_day import LedgerTotalDayRow
from store.models.ledger_week import LedgerWeekRow
from store.models.ledger_week_span import LedgerWeekSpanRow
from store.models.mail_log import MailLogRow
from store.models.meta import MetaRow
from store.models.owner import OwnerRow
from store.models.owner_rule import OwnerRuleRow
from store.models.price import PriceRow
from store.models.process_sample import ProcessSampleRow
from store.models.recipient import RecipientRow
from store.models.recommendation import RecommendationRow
from store.models.recommendation_event import RecommendationEventRow
from store.models.report_told import ReportToldRow
from store.models.rollup_pending import RollupPendingRow
from store.models.rule_exclusion import RuleExclusionRow
from store.models.rule_threshold import RuleThresholdRow
from store.models.site import SiteRow
from store.models.tariff import TariffRow
from store.models.usage_day import UsageDayRow
from store.models.usage_hour import UsageHourRow
from store.models.verification import VerificationRow
from store.models.workload import WorkloadRow

MODELS: Final[tuple[type[Base], ...]] = (
    HostRow,
    GpuRow,
    GpuSampleRow,
    WorkloadRow,
    ProcessSampleRow,
    EngineRow,
    EngineSampleRow,
    HostSampleRow,
    GpuEventRow,
    RollupPendingRow,
    GpuHourRow,
    EngineHourRow,
    HostHourRow,
    UsageHourRow,
    DayPendingRow,
    GpuDayRow,
    GpuWeekRow,
    DemandDayRow,
    DemandHourRow,
    EngineDayRow,
    HostDayRow,
    UsageDayRow,
    HostShareRow,
    PriceRow,
    TariffRow,
    SiteRow,
    ExchangeRateRow,
    OwnerRow,
    OwnerRuleRow,
    BudgetRow,
    LedgerRateRow,
    LedgerPlaceRow,
    LedgerMonthRow,
    LedgerBookingRow,
    LedgerDayRow,
    LedgerTotalRow,
    LedgerTotalDayRow,
    LedgerGpuTotalRow,
    LedgerWeekRow,
    LedgerWeekSpanRow,
    LedgerEngineSetRow,
    LedgerEngineDayRow,
    LedgerEngineWeekRow,
    LedgerPendingRow,
    RecommendationRow,
    RecommendationEventRow,
    RuleThresholdRow,
    ReportToldRow,
    RuleExclusionRow,
    VerificationRow,
    JobRunRow,
    RecipientRow,
    AlertRow,
    MailLogRow,
    AlertToldRow,
    MetaRow,
    ApiTokenRow,
)
METADATA: Final = Base.metadata
