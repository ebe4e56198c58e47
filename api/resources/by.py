"""Keys that tables group on."""

from enum import StrEnum


class By(StrEnum):
    """What ``--by`` and ``?by=`` take."""

    GPU = "gpu"
    HOST = "host"
    MODEL = "model"
    WORKLOAD = "workload"
    USER = "user"
    NAMESPACE = "namespace"
    ENGINE = "engine"
    OWNER = "owner"
    ACTIVITY = "activity"
    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
