"""Names that want to be more than text are only text: in every page, list, CSV, mail, alert and webhook."""

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from email.message import EmailMessage
from html.parser import HTMLParser
from pathlib import Path

import pytest
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from api.alerts_found import find
from api.alerts_message import as_mail, as_slack, message_of
from api.app import ROUTES
from api.mail_message import report_message
from api.report import weekly
from store.engine import dispose_engine, make_engine, session_scope
from store.queries import owners
from tests.e2e.browsing import page_routes
from tests.e2e.sites import pages_of
from tests.integration.api.fleet_for_tests import NOW, settings_for
from tests.integration.api.ingest_for_tests import json_of, make_token, post
from tests.integration.pages import hostile_fleet
from tests.integration.pages.conftest import person_at

TURNING = re.compile("[\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
FORMULA = re.compile(r"[=+\-@\t\r]")
NUMBER = re.compile(r"-?\d+(\.\d+)?([eE][+-]?\d+)?")


@pytest.fixture(scope="module")
def url(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The hostile fleet, read by all tests of this module."""
    path = tmp_path_factory.mktemp("hostile") / "gpuwise.db"
    path.write_bytes(sqlite_template.read_bytes())
    found = f"sqlite:///{path}"
    hostile_fleet.fill_hostile(found)
    yield found
    dispose_engine(found)


@pytest.fixture(scope="module")
def guest(url: str) -> TestClient:
    """Somebody who looks at it."""
    return person_at(url)


class Elements(HTMLParser):
    """What a browser would make of a page that is no text."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.made: list[str] = []
        self.text: list[str] = []
        self.said: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        src = given.get("src", "")
        if tag == "script" and not src.startswith("/static/"):
            self.made.append(f"script {src}")
        if tag == "img" and not src.startswith(("cid:", "data:image/png")):
            self.made.append(f"img {src}")
        is_preview = tag == "iframe" and src.startswith("/report/preview")
        if not is_preview and tag in {"iframe", "object", "embed", "base", "marquee"}:
            self.made.append(tag)
        self.made += [f"{tag} {name}" for name in given if name.startswith("on")]
        self.made += [
            f"{tag} {name}={given[name][:60]}"
            for name in ("href", "action", "formaction", "xlink:href")
            if re.match(r"(?i)\s*(javascript|data|vbscript):", given.get(name, ""))
        ]
        self.said += [
            value for name, value in given.items() if name in {"title", "aria-label", "placeholder", "alt"}
        ]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def faults_of(html: str) -> list[str]:
    """What of a document is not inert."""
    document = Elements(html)
    text = "".join(document.text)
    found = list(document.made)
    for where, said in (("text", text), *(("attribute", one) for one in document.said)):
        found += [
            f"{where}: {mark[0]!r} in {said[max(0, mark.start() - 20) : mark.end() + 20]!r}"
            for mark in TURNING.finditer(said)
        ]
        found += [f"{where}: {mark[0]!r}" for mark in CONTROL.finditer(said)]
    return list(dict.fromkeys(found))[:8]


@pytest.mark.parametrize("pattern", page_routes())
def test_every_page_shows_hostile_names_as_text(guest: TestClient, url: str, pattern: str) -> None:
    address = pages_of(url)[pattern]
    answer = guest.get(address, follow_redirects=True)
    assert answer.status_code == 200, answer.text[:300]
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self';" in policy
    assert "unsafe" not in policy
    assert faults_of(answer.text) == []
    assert len(answer.content) < 1_500_000, "a name of 10 kB is not repeated in full"


@pytest.mark.parametrize("number", range(len(hostile_fleet.NAMES)))
def test_each_name_is_inert_on_the_pages_of_what_bears_it(guest: TestClient, url: str, number: int) -> None:
    opened = 0
    # What no agent may deliver an import may have stored: its own address may then be refused, in a page.
    fine = {200} if hostile_fleet.NAMES[number] in hostile_fleet.PRINTED else {200, 404, 422}
    for pattern, address in pages_of(url, number).items():
        answer = guest.get(address, follow_redirects=True)
        assert answer.status_code in fine, (address[:200], answer.text[:300])
        assert faults_of(answer.text) == [], pattern
        opened += 1
    assert opened > 15


def test_names_are_shown_not_dropped(guest: TestClient) -> None:
    said = "".join(Elements(guest.get("/fleet").text).text)
    for name in hostile_fleet.PRINTED:
        assert name in said, name
    assert "\\u202egnp.yap" in said


def test_search_shows_them_inert(guest: TestClient) -> None:
    for name in hostile_fleet.NAMES:
        for address in ("/search", "/search/quick"):
            answer = guest.get(address, params={"q": name[:200]})
            assert answer.status_code == 200
            assert faults_of(answer.text) == [], (address, name[:40])


@pytest.mark.parametrize("pattern", page_routes())
def test_a_hostile_address_is_inert_in_the_answer(guest: TestClient, url: str, pattern: str) -> None:
    address = pages_of(url).get(pattern)
    if address is None:
        pytest.skip(f"the hostile fleet has no {pattern}")
    path = address.partition("?")[0]
    for name in ("since", "sort", "by", "owner", "host", "q", "view", "rule", "saved", "notice"):
        for value in hostile_fleet.NAMES[:5]:
            answer = guest.get(path, params={name: value})
            assert answer.status_code in {200, 303, 307, 400, 404, 422}, (name, answer.status_code)
            assert faults_of(answer.text) == [], (name, value)


def lists() -> Iterator[str]:
    """Addresses of REST that answer GET and need no key."""
    for router in ROUTES:
        for route in router.routes:
            assert isinstance(route, APIRoute)
            if "GET" in route.methods and "{" not in route.path:
                yield f"/api/v1{route.path}"


@pytest.mark.parametrize("path", sorted(set(lists())))
def test_rest_answers_json_that_no_browser_takes_for_a_page(guest: TestClient, path: str) -> None:
    answer = guest.get(path, headers={"accept": "application/json"})
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "html" not in answer.headers.get("content-type", "")


def test_no_cell_of_a_csv_is_a_formula(guest: TestClient) -> None:
    read = 0
    for path in sorted(set(lists())):
        answer = guest.get(path, params={"format": "csv"}, headers={"accept": "text/csv"})
        if "text/csv" not in answer.headers.get("content-type", ""):
            continue
        csv.field_size_limit(10_000_000)
        rows = list(csv.reader(io.StringIO(answer.text)))
        read += len(rows) > 1
        cells = [cell for row in rows for cell in row if FORMULA.match(cell) and not NUMBER.fullmatch(cell)]
        assert cells == [], path
    assert read > 8, "there are lists with rows"


def parts_of(message: EmailMessage) -> dict[str, str]:
    """The parts of a mail by type."""
    return {
        part.get_content_type(): str(part.get_content())
        for part in message.walk()
        if part.get_content_maintype() == "text"
    }


def inert_mail(message: EmailMessage) -> None:
    """Nothing of a mail acts."""
    parts = parts_of(message)
    assert faults_of(parts["text/html"]) == []
    assert not TURNING.search(parts["text/plain"])
    assert not CONTROL.search(parts["text/plain"])
    for name, value in message.items():
        assert not re.search(r"[\r\n\u2028\u2029\x85\u202e]", str(value)), name


def test_the_weekly_mail_is_inert(url: str) -> None:
    settings = settings_for(url)
    with session_scope(make_engine(url)) as session:
        audiences = [None, *dict.fromkeys(rule.owner for rule in owners.listing(session))]
        assert len(audiences) > 5
        for audience in audiences:
            report = weekly(session, settings, NOW, audience)
            message = report_message(report, settings, NOW, to="reader@example.org")
            inert_mail(message)
            assert len(bytes(message)) < 100_000


def test_alerts_are_inert_by_mail_and_webhook(url: str) -> None:
    settings = replace(settings_for(url), base_url="https://gpuwise.example")
    with session_scope(make_engine(url)) as session:
        faults = find(session, settings, NOW).faults
    assert len(faults) >= len(hostile_fleet.NAMES)
    for at in range(len(faults)):
        message = message_of(faults[at : at + 1], (faults[at].title,), settings, simulated=False)
        inert_mail(as_mail(message, settings, NOW, to="reader@example.org"))
        told = as_slack(message)
        said = json.dumps(json.loads(told), ensure_ascii=False)
        assert not TURNING.search(said)
        # Slack reads <…> as a link and <!channel> as a call, but in plain text: only ours may stand there.
        marked = [json.loads(told)["text"], *re.findall(r'"mrkdwn", "text": "((?:[^"\\\\]|\\\\.)*)"', said)]
        for link in re.findall(r"<([^>]*)>", " ".join(marked)):
            assert link.startswith("https://gpuwise.example"), link
        assert len(told) < 50_000


def test_agents_may_say_what_is_printed_and_nothing_that_turns_text(ready_database: str) -> None:
    client = person_at(ready_database)
    for number, name in enumerate(hostile_fleet.NAMES):
        token = make_token(ready_database, None)
        given = hostile_fleet.delivery(number, name)
        answer = post(client, token, json_of(given))
        assert answer.status_code == (200 if name in hostile_fleet.PRINTED else 422), (
            name[:40],
            answer.text[:300],
        )
    assert client.get("/fleet").status_code == 200
