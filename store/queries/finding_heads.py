"""Findings cut by the database before their evidence and charts: most of their text, which tables do not print."""

from typing import Any

from sqlalchemy import func
from sqlalchemy.orm import Session

from store import finding_json


def head(session: Session, finding: Any) -> Any:
    """SQL for the head of a finding's column; read it with ``finding_json.from_head``. Of NULL NULL."""
    place = func.instr if session.get_bind().dialect.name == "sqlite" else func.strpos
    return func.substr(finding, 1, place(finding, finding_json.EVIDENCE) - 1)
