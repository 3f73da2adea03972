"""The pages of compare, history and collectives in a real browser: tables, charts, print."""

import json
import re

import browser as headless
import fixture_collectives
import fixture_history
import pytest
from comparison_documents import document, launches
from reference_summaries import summarised
from stratagem_reports import __main__ as command

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("pages_in_browser")]

ROWS = 24
DDP = "ddp/resnet50/devices:2/batch:48/image:128"


@pytest.fixture(scope="module")
def comparison_page(tmp_path_factory, chromium):
    """Rows whose time changes by -12% to +11%; every sixth does more calls and was disturbed."""
    folder = tmp_path_factory.mktemp("comparison")
    noise = (0.998, 1.0, 1.001, 1.003, 0.999, 1.002, 0.997, 1.0)
    for side in ("base", "head"):
        rows = {}
        for index in range(ROWS):
            changed = side == "head"
            time_ms = 100.0 * (index + 1) * (1.0 + 0.01 * (index - 12) if changed else 1.0)
            often, marks = (3, ["waited"]) if changed and index % 6 == 5 else (2, [])
            name = f"pipeline/resnet50/devices:2/batch:48/image:128/split:{index + 1}/schedule:1f1b"
            times = [time_ms * factor for factor in noise]
            rows[name] = launches(times, calls=often, marks=marks)
        (folder / f"{side}.json").write_text(json.dumps(document(rows)), encoding="utf-8")
    page = folder / "comparison.html"
    files = [str(folder / f"{name}.json") for name in ("base", "head")]
    assert command.main(["compare", *files, "--html", str(page), "--confidence", "80%"]) == 1
    return page


@pytest.fixture(scope="module")
def trend_page(tmp_path_factory, chromium):
    """Six series that changed, one of them for the better, and one that did not."""
    folder = tmp_path_factory.mktemp("trend")
    steps = [
        fixture_history.runs(
            60, f"{DDP}/bucket:{index}", step_at=20 + index, factor=1.04 + index / 100
        )
        for index in range(5)
    ]
    faster = fixture_history.runs(60, f"{DDP}/no_overlap", step_at=40, factor=0.9)
    single = fixture_history.runs(30, "single/resnet50", machine={"cpu_model": "Other processor"})
    history = fixture_history.store(folder / "history", *steps, faster, single)
    words = ["history", "trend", "--dir", str(history), "--out-dir", str(folder)]
    assert command.main([*words, "--format", "html"]) == 0
    return folder / "trend.html"


@pytest.fixture(scope="module")
def collectives_page(tmp_path_factory, chromium):
    folder = tmp_path_factory.mktemp("collectives")
    source = folder / "results.json"
    document = summarised(fixture_collectives.collectives(failed=True))
    source.write_text(json.dumps(document), encoding="utf-8")
    assert command.main(["report", str(source)]) == 0
    return folder / "report.html"


@pytest.fixture(params=["comparison_page", "trend_page", "collectives_page"])
def any_page(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize(("scheme", "width"), headless.VIEWS)
def test_a_page_asks_for_nothing_complains_of_nothing_and_fits(chromium, any_page, scheme, width):
    with headless.opened(chromium, any_page, width, color_scheme=scheme) as seen:
        seen.draw_all()
        page = seen.page
        assert page.locator("figure.drawn .picture:visible").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert seen.complaints == [] and seen.outside_requests() == []


def test_no_word_of_a_note_is_broken_on_a_phone(chromium, any_page):
    with headless.opened(chromium, any_page, 390) as seen:
        seen.draw_all()
        assert seen.broken_words() == []


def test_the_comparison_sorts_by_mouse(chromium, comparison_page):
    with headless.opened(chromium, comparison_page) as seen:
        page = seen.page
        assert page.locator("h1").inner_text() == "Comparison: regression"
        assert seen.sorted_by() == {}, "regressions first is the order of no column"
        page.get_by_role("button", name="Change").click()
        assert seen.sorted_by() == {"Change": "ascending"}
        changes = [float(text.rstrip("%")) for text in seen.column(4)]
        assert changes == sorted(changes) and changes[0] == -12.0
        page.get_by_role("button", name="Base").click()
        page.get_by_role("button", name="Base").click()
        assert seen.sorted_by() == {"Base": "descending"}
        assert seen.column(2)[0].startswith("2.40 s") and seen.column(2)[-1].startswith("100 ms")
        assert page.locator("#announcement").inner_text() == "Sorted by Base, descending"
        assert "communication.all_reduce.calls: 2" in page.locator("#changes").inner_text()


def test_the_comparison_sorts_by_keyboard(chromium, comparison_page):
    with headless.opened(chromium, comparison_page) as seen:
        seen.page.get_by_role("button", name="Row", exact=True).focus()
        seen.page.keyboard.press("Enter")
        assert seen.sorted_by() == {"Row": "ascending"}
        splits = [int(re.search(r"split:(\d+)", name)[1]) for name in seen.shown_rows()]
        assert splits == list(range(1, ROWS + 1))
        seen.page.keyboard.press("Space")
        assert seen.sorted_by() == {"Row": "descending"}
        seen.page.keyboard.press("Tab")
        seen.page.keyboard.press("Enter")
        assert seen.sorted_by() == {"Verdict": "ascending"}


def test_the_comparison_is_filtered_by_verdict_marks_and_text(chromium, comparison_page):
    with headless.opened(chromium, comparison_page) as seen:
        page = seen.page
        status = page.locator(".filters [role=status]")
        assert status.inner_text() == f"{ROWS} rows"
        page.get_by_label("Verdict").select_option("faster")
        assert len(seen.shown_rows()) > 5 and set(seen.column(1)) == {"faster"}
        page.get_by_label("Marks").select_option("waited")
        assert len(seen.shown_rows()) == 2
        page.get_by_role("searchbox", name="Text").focus()
        page.keyboard.type("SPLIT:12")
        assert len(seen.shown_rows()) == 1
        assert status.inner_text() == f"1 of {ROWS} rows shown"
        page.get_by_role("button", name="All rows").click()
        page.locator(".filters [role=status]", has_text=re.compile(f"^{ROWS} rows$")).wait_for()


def test_a_short_comparison_has_no_filter(chromium, tmp_path):
    text = json.dumps(document({"ddp/mlp": launches([100.0, 100.4, 99.7, 100.1])}))
    (tmp_path / "side.json").write_text(text, encoding="utf-8")
    files = [str(tmp_path / "side.json")] * 2
    page = tmp_path / "comparison.html"
    assert command.main(["compare", *files, "--html", str(page)]) == 0
    with headless.opened(chromium, page) as seen:
        assert len(seen.shown_rows()) == 1 and seen.page.locator(".filters").count() == 0
        assert seen.complaints == []


def test_change_points_sort_and_are_filtered(chromium, trend_page):
    with headless.opened(chromium, trend_page) as seen:
        page = seen.page
        assert page.locator("h1").inner_text() == "Trends: 6 change points in 7 series"
        assert seen.sorted_by() == {"Date": "descending"}
        dates = seen.column(2)
        assert dates == sorted(dates, reverse=True) and len(set(dates)) == 6
        page.get_by_role("button", name="Date").focus()
        page.keyboard.press("Enter")
        assert seen.sorted_by() == {"Date": "ascending"} and seen.column(2) == sorted(dates)
        page.get_by_role("button", name="Change").click()
        assert seen.column(3)[0].endswith("faster")
        page.get_by_label("Direction").select_option("faster")
        (row,) = seen.shown_rows()
        assert row.endswith("no_overlap")


def test_the_library_is_embedded_once_and_change_points_are_marked(chromium, trend_page):
    assert trend_page.read_text(encoding="utf-8").count("window.vegaEmbed") == 1
    with headless.opened(chromium, trend_page) as seen:
        figure = seen.hover("#trend_1")
        assert figure.locator(".plot line[stroke-dasharray]").count() == 1
        assert "slower" in figure.locator(".plot .role-mark.mark-text").last.text_content()
        figure.locator(".plot").focus()
        seen.page.keyboard.press("Home")
        words = seen.page.locator("#announcement")
        assert re.match(r"2026-01-01, \S+ ms, commit 0+, 5 launches, ", words.inner_text())
        seen.page.keyboard.press("End")
        assert re.match(r"\+4\.\d% slower, .* commits \w+\.\.\w+, p ", words.inner_text())
        seen.page.locator(".told", has_text="slower").wait_for(state="visible")
        last = seen.hover("#trend_7")
        assert last.locator(".plot line[stroke-dasharray]").count() == 0


def test_trends_stand_without_javascript_and_in_print(chromium, trend_page):
    with headless.opened(chromium, trend_page, java_script_enabled=False) as seen:
        assert seen.page.locator("figure .picture svg:visible").count() == 7
        assert seen.page.locator("#changes tbody tr").count() == 6
    with headless.opened(chromium, trend_page) as seen:
        seen.draw_all()
        seen.page.emulate_media(media="print")
        assert seen.page.locator("figure .picture svg:visible").count() == 7
        assert seen.page.locator(".interactive:visible").count() == 0


def test_the_bandwidth_chart_is_in_the_report_of_collectives(chromium, collectives_page):
    with headless.opened(chromium, collectives_page) as seen:
        page = seen.page
        assert page.locator("h1").inner_text() == "Collectives: Gloo, 2 ranks"
        figure = seen.hover("#bandwidth")
        names = {"All reduce", "Reduce scatter", "All gather", "Broadcast", "Send"}
        assert set(figure.locator(".legend li").all_inner_texts()) == names
        figure.locator(".plot").focus()
        page.keyboard.press("Home")
        assert page.locator("#announcement").inner_text().startswith("All reduce, 1 KiB, ")
        page.get_by_role("button", name="Message").click()
        assert seen.column(1)[0] == "1 KiB" and seen.column(1)[-2] == "4 MiB"
        assert seen.column(0)[-1].startswith("All reduce, 16 MiB"), "the row that failed is last"
        page.get_by_role("combobox", name="Collective").select_option("Broadcast")
        assert len(seen.shown_rows()) == len(fixture_collectives.SIZES)
