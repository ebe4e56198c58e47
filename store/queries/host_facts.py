"""What the user says about hosts."""

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from core.ownership import HostFacts
from store.engine import begin_write
from store.keys import attributes_of, attributes_text
from store.models.host import HostRow


def host_facts(session: Session) -> dict[str, HostFacts]:
    """Every host by name."""
    row = HostRow
    statement = select(row.name, row.cluster, row.instance_type, row.region, row.labels)
    return {
        name: HostFacts(name, cluster, instance_type, region, attributes_of(labels))
        for name, cluster, instance_type, region, labels in session.execute(statement)
    }


def begin(session: Session) -> None:
    """Whoever looks before it writes begins so: on SQLite nobody else can write in between then."""
    begin_write(session.connection())


def write(session: Session, facts: HostFacts) -> None:
    """Replace what is said of a host."""
    session.execute(
        update(HostRow)
        .where(HostRow.name == facts.host)
        .values(
            cluster=facts.cluster,
            instance_type=facts.instance_type,
            region=facts.region,
            labels=attributes_text(dict(facts.labels)),
        )
    )
