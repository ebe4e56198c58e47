"""Every metric is declared once, under this roof: ``gpu_metrics``, ``engine_metrics``, ``host_metrics``.

From a declaration follow: the columns of the sample tables (a contract test compares them), what
the importers look for in nvidia-smi, dmon and Prometheus text, the exporter's names and HELP lines,
tooltips and the metrics page of the documentation.
"""

from typing import Final

from core.engine_metrics import ENGINE_METRICS
from core.gpu_metrics import GPU_METRICS
from core.host_metrics import HOST_METRICS
from core.metric import PLAUSIBLE, Fold, Kind, Metric, Range

GPU_COLUMNS: Final = tuple(metric.name for metric in GPU_METRICS)
ENGINE_COLUMNS: Final = tuple(metric.name for metric in ENGINE_METRICS)
HOST_COLUMNS: Final = tuple(metric.name for metric in HOST_METRICS)
BY_NAME: Final = {metric.name: metric for metric in GPU_METRICS + ENGINE_METRICS + HOST_METRICS}

__all__ = [
    "BY_NAME",
    "ENGINE_COLUMNS",
    "ENGINE_METRICS",
    "GPU_COLUMNS",
    "GPU_METRICS",
    "HOST_COLUMNS",
    "HOST_METRICS",
    "PLAUSIBLE",
    "Fold",
    "Kind",
    "Metric",
    "Range",
]
