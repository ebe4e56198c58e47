"""What Alembic runs: every migration on the connection that ``store.schema`` hands over."""

import re
from typing import Any

from alembic import context

from store.tables import METADATA

_PARTITION = re.compile(r"^(gpu|process|engine|host)_sample_p\d{8}$")


def include(_object: Any, name: str | None, type_: str, reflected: bool, _compare_to: Any) -> bool:
    """Day partitions are made by ingest, not by migrations."""
    return not (type_ == "table" and reflected and name is not None and _PARTITION.match(name))


context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    include_object=include,
    render_as_batch=True,
    compare_type=True,
    transaction_per_migration=False,
)
context.run_migrations()
