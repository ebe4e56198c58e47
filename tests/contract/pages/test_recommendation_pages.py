"""The pages of advice render from fixtures: every kind of state, inert against hostile names, titles that say what was found."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from advisor.facts import time_chart
from advisor.reversible import REVERSIBLE
from advisor.rules import RULES
from api.pages import recommendation, recommendation_rules, recommendations
from api.pages.facts import facts_of
from api.pages.filters import filter_bar
from api.pages.forms import NO_FORM, FormState
from api.pages.frame import Frame
from api.pages.pager import Pager
from api.pages.period import PeriodLink
from api.pages.recommendation import LifeLine, forms_of
from api.pages.recommendation_charts import conclusion, evidence_chart, proof_of, track_of
from api.pages.recommendation_where import where_of
from api.pages.view import Address
from api.rec_row import row_of
from api.resources.verifications import TrackRecordView, VerificationView, record_view
from api.templating import render
from api.words import STATUS
from core.clock import from_ms
from core.evidence import Window
from core.finding import NotEvaluated, Range, Status, Subject, Totals
from core.readings import GpuIdentity
from core.units import DAY_MS, HOUR_MS
from core.verification import Ledger, TraceDay, Verdict
from tests.contract import page_fixtures as good
from tests.contract.test_pages_render import Document

ACTED_MS = good.NOW_MS - 20 * DAY_MS
TOTALS = Totals(Range(400.0, 500.0, 600.0), Range(900.0, 1000.0, 1100.0), None, 9_000.0)
GPUS = {
    "GPU-0": GpuIdentity("GPU-0", host="node-01", index=3, model="H100"),
    "GPU-1": GpuIdentity("GPU-1", host="node-01", index=4, model="H100"),
}


def list_html(frame: Frame, view: str = "open") -> str:
    refused = [
        NotEvaluated("small-batch", Subject("engine", f"e{i}"), ("running_requests",), good.HOSTILE)
        for i in range(5)
    ]
    address = Address("/recommendations", (("rule", good.HOSTILE),))
    found = good.recommendations()
    page = recommendations.ListPage(
        frame=frame,
        headline=recommendations.headline(view, len(found), TOTALS) if view == "open" else "5 refused",
        lede="After overlap.",
        views=(recommendations.ViewLink("Open", "/recommendations", view == "open", 4),),
        view=view,
        filters=filter_bar(address, {"rule": ["small-batch"]}),
        asked_q=good.HOSTILE,
        hidden_q=(("rule", "small-batch"),),
        sorts=(PeriodLink("Best first", "/recommendations", True),),
        ledgers=recommendations.ledgers_of(TOTALS, Window(0, 30 * DAY_MS), [rec.finding for rec in found]),
        rows=tuple(row_of(str(rec.id), rec.finding, rec.status) for rec in found),
        count=len(found),
        pager=Pager(0, 4, 40, "", "/recommendations?page=2"),
        files=(("CSV", "/api/v1/recommendations?format=csv"),),
        refusals=recommendations.refusals(refused),
        has_data=True,
    )
    return render("pages/recommendations.html", page)


def verification(**changes: object) -> VerificationView:
    days = tuple(
        TraceDay(ACTED_MS + n * DAY_MS, 24.0 if n < 0 else 2.0, 24.0, 23.0, 25.0, 20.0)
        for n in range(-14, 15)
    )
    made = VerificationView(
        id=1,
        recommendation_id=2,
        rule_id="small-batch",
        acted_at=from_ms(ACTED_MS),
        checked_at=from_ms(good.NOW_MS),
        verdict=Verdict.SAVED,
        sentence="Saves 600 GPU-h a month at equal load.",
        ledger=Ledger.CAPACITY,
        unit="capacity_gpu_h_month",
        saving=Range(500.0, 600.0, 700.0),
        predicted_p50=800.0,
        realised_ratio=0.75,
        slo_regressions=("Mean time to first token rose.",),
        facts={},
        days=days,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def detail_html(
    frame: Frame,
    *,
    status: Status = Status.OPEN,
    proofs: tuple[VerificationView, ...] = (),
    form: FormState = NO_FORM,
    **changes: object,
) -> str:
    rec = good.recommendation(2, status, **{"gpu_uuids": ("GPU-0",), **changes})
    record = TrackRecordView(
        "small-batch", len(proofs), Range(0.4, 0.7, 1.1), bool(proofs), "1 verified case."
    )
    page = recommendation.page_of(
        frame,
        rec,
        where_of(rec.finding, GPUS, {"GPU-0": "search"}),
        life=[LifeLine(good.NOW_MS, STATUS[Status.OPEN], good.HOSTILE, good.HOSTILE)],
        forms=forms_of(rec, good.NOW_MS, form),
        proofs=[proof_of(one) for one in proofs],
        track=track_of(record, proofs, 2),
    )
    return render("pages/recommendation.html", page)


def rules_html(frame: Frame) -> str:
    records = [record_view(rule.id, None) for rule in RULES]
    counts = {("small-batch", Status.OPEN): 3, ("small-batch", Status.DISMISSED): 1}
    page = recommendation_rules.page_of(frame, counts, records, [verification()], "small-batch")
    return render("pages/recommendation_rules.html", page)


PAGES: dict[str, Callable[[Frame], str]] = {
    "list": list_html,
    "not judged": lambda f: list_html(f, "not-judged"),
    "open": detail_html,
    "verified": lambda f: detail_html(f, status=Status.VERIFIED, proofs=(verification(),)),
    "refused": lambda f: detail_html(
        f,
        status=Status.DONE,
        proofs=(verification(verdict=Verdict.TOO_EARLY, saving=None, realised_ratio=None, days=()),),
    ),
    "gone": lambda f: detail_html(f, status=Status.GONE, chart={}),
    "rules": rules_html,
}


@pytest.mark.parametrize("name", PAGES)
def test_every_state_is_one_well_named_page_without_inline_code(name: str) -> None:
    html = PAGES[name](good.frame("recommendations"))
    document = Document(html)
    assert document.headings.count("h1") == 1
    assert document.headings[0] == "h1"
    assert not document.inline
    assert not document.unnamed
    assert "<script>alert" not in html


def test_a_gpu_is_called_by_its_place_and_links_to_its_page() -> None:
    html = detail_html(good.frame())
    assert '<a href="/gpus/GPU-0"><bdi>GPU 3 on node-01</bdi></a>' in html
    assert '<a href="/owners/search">' in html
    assert "/settings/rules?" in html


def test_many_gpus_are_folded() -> None:
    html = detail_html(good.frame(), gpu_uuids=tuple(f"GPU-{n}" for n in range(40)))
    assert "<summary>40 of them</summary>" in html


def test_a_verified_saving_shows_claim_measure_and_picture() -> None:
    html = detail_html(good.frame(), status=Status.VERIFIED, proofs=(verification(),))
    assert "It came true" in html
    assert "75\u00a0%" in html
    assert "of the claim came true" in html
    assert 'class="forecast"' in html
    assert ">done " in html


def test_a_refusal_says_why_and_draws_no_baseline() -> None:
    one = verification(
        verdict=Verdict.TOO_EARLY,
        sentence="Too early: 5 of 14 days.",
        saving=None,
        realised_ratio=None,
        days=(),
    )
    html = detail_html(good.frame(), status=Status.DONE, proofs=(one,))
    assert "Too early: 5 of 14 days." in html
    assert "would have been" not in html


def test_a_refused_form_keeps_what_was_typed_beside_its_error() -> None:
    typed = {"note": "<b>mine</b>", "reason": "other"}
    wrong = FormState("dismiss", typed, {"note": "something else needs a note"})
    html = detail_html(good.frame(), form=wrong)
    assert "&lt;b&gt;mine&lt;/b&gt;</textarea>" in html
    assert '<option value="other" selected>' in html
    assert 'id="dismiss-note-wrong" role="alert">something else needs a note' in html
    assert html.count('aria-invalid="true"') == 1


def test_a_step_that_is_not_offered_any_more_still_says_why_it_was_refused() -> None:
    wrong = FormState("claim", {"who": "Ada"}, {"": "it is done already"})
    html = detail_html(good.frame(), status=Status.DONE, form=wrong)
    assert html.count('role="alert">it is done already') == 1


def test_every_rule_says_whether_it_can_be_taken_back() -> None:
    assert set(REVERSIBLE) == {rule.id for rule in RULES}


def test_the_chart_title_says_on_which_side_of_the_threshold_it_was() -> None:
    assert conclusion([1.0, 2.0, 9.0], "requests", 5.0).startswith(
        "Not above the threshold of 5 requests in 67"
    )
    assert conclusion([9.0, 9.0], "W", 5.0) == "Above the threshold of 5 W in 100\u00a0% of the points"
    assert conclusion([], "W", None) == "Nothing was measured"
    assert conclusion([1.0, 2.0, 9.0], "W", None) == "Median 2, at most 9 W"
    assert conclusion([2.0, 2.0], "W", None) == "2 W throughout"


def test_shares_are_drawn_in_per_cent_with_their_threshold() -> None:
    chart = time_chart([(0, 0.25), (HOUR_MS, 0.75)], "share of the hour active", 0.5)
    shown = evidence_chart(replace(good.recommendations()[0].finding, chart=chart))
    assert shown is not None
    assert shown.unit == "% of the hour active"
    assert shown.title.startswith("Above the threshold of 50 % of the hour active in 50")
    assert shown.rows == ((HOUR_MS, 75.0), (0, 25.0))


def test_long_lists_of_evidence_are_folded_and_uuids_are_named() -> None:
    facts = facts_of(
        {"peers": [f"GPU-{n}" for n in range(6)], "other": "beside GPU-0"}, {"GPU-0": "gpu 3 on a"}
    )
    assert facts[0].parts[0] == "gpu 3 on a"
    assert facts[0].text == "6 of them"
    assert facts[1].text == "beside gpu 3 on a"
