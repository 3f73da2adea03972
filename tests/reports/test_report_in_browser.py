"""The pages in a real browser: charts, table, themes, print, and a long report."""

import json
import re

import browser as headless
import fixture_many_rows
import fixture_ranks
import fixture_results
import pytest
from stratagem_reports import __main__ as command

pytestmark = pytest.mark.slow

FIGURES = 10
MOST_BYTES = 6_000_000


@pytest.fixture(scope="module")
def chromium():
    with headless.chromium() as browser:
        yield browser


def made(folder, document):
    source = folder / "results.json"
    source.write_text(json.dumps(document), encoding="utf-8")
    assert command.main(["report", str(source)]) == 0
    return folder / "report.html"


@pytest.fixture(scope="module")
def report(tmp_path_factory, chromium):
    return made(tmp_path_factory.mktemp("report"), fixture_results.results())


@pytest.fixture(scope="module")
def long_report(tmp_path_factory, chromium):
    document = fixture_many_rows.many_rows(1000 - len(fixture_ranks.STEP_MS))
    document["benchmarks"] += fixture_ranks.rows(4000)
    return made(tmp_path_factory.mktemp("long"), document)


@pytest.fixture
def seen(chromium, report):
    with headless.opened(chromium, report, color_scheme="light") as page:
        yield page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 400])
def test_every_chart_is_drawn_without_complaint_or_request(chromium, report, scheme, width):
    with headless.opened(chromium, report, width, color_scheme=scheme) as seen:
        seen.draw_all()
        page = seen.page
        assert page.locator("figure.drawn").count() == FIGURES
        assert page.locator("figure.drawn .picture:visible").count() == 0
        for figure in page.locator("figure").all():
            assert figure.locator(".plot svg path").count() > 5
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.locator(".modebar-btn").count() == 5 * FIGURES
        assert page.get_by_role("button", name="Share").count() == 0
        assert seen.complaints == []
        assert seen.outside_requests() == []


def test_a_foreign_script_does_not_run(seen):
    seen.page.evaluate(
        "const script = document.createElement('script');"
        "script.textContent = 'window.foreign = true';"
        "document.body.append(script)"
    )
    assert seen.page.evaluate("window.foreign") is None
    assert any("Content Security Policy" in line for line in seen.complaints)


def test_headings_sort_by_mouse(seen):
    page = seen.page
    before = seen.shown_rows()
    assert seen.sorted_by() == {"Time": "ascending"}
    page.get_by_role("button", name="Time", exact=True).click()
    assert seen.sorted_by() == {"Time": "descending"}
    after = seen.shown_rows()
    assert after[:-1] == before[:-1][::-1] and after[-1] == before[-1]
    assert page.locator("#announcement").inner_text() == "Sorted by Time, descending"


def test_headings_sort_by_keyboard(seen):
    page = seen.page
    page.get_by_role("button", name="Peak memory").focus()
    page.keyboard.press("Enter")
    assert seen.sorted_by() == {"Peak memory": "ascending"}
    page.get_by_role("button", name="Row", exact=True).focus()
    page.keyboard.press("Space")
    assert seen.sorted_by() == {"Row": "ascending"}
    names = [row for row in seen.shown_rows() if row.startswith("Pipeline")]
    splits = [int(name.split("split ")[1].split(",")[0]) for name in names]
    assert splits == sorted(splits)


def test_the_text_filter_by_keyboard_and_the_count_it_announces(seen):
    page = seen.page
    status = page.locator(".filters [role=status]")
    assert status.inner_text() == "12 rows"
    page.get_by_role("searchbox", name="Text").focus()
    page.keyboard.type("PIPELINE split:1")
    shown = seen.shown_rows()
    assert len(shown) == 3 and all("Pipeline, split 1" in row for row in shown)
    assert status.inner_text() == "3 of 12 rows shown"
    page.get_by_role("button", name="All rows").focus()
    page.keyboard.press("Enter")
    page.locator(".filters [role=status]", has_text=re.compile("^12 rows$")).wait_for()
    assert len(seen.shown_rows()) == 12


@pytest.mark.parametrize(
    ("label", "value", "count"),
    [
        ("Strategy", "single", 2),
        ("Strategy", "model_parallel", 1),
        ("Verification", "passed", 11),
        ("Verification", "row failed", 1),
        ("Marks", "waited", 1),
        ("Marks", "no mark", 11),
    ],
)
def test_rows_are_chosen_by_strategy_verification_and_marks(seen, label, value, count):
    seen.page.get_by_label(label).select_option(value)
    assert len(seen.shown_rows()) == count


def test_a_box_of_the_timeline_says_what_it_is(seen):
    page = seen.page
    figure = page.locator("#gantt_best")
    figure.scroll_into_view_if_needed()
    figure.locator(".plot .main-svg").first.wait_for(state="visible")
    figure.locator(".plot").focus()
    page.keyboard.press("Home")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    words = page.locator("#announcement").inner_text()
    assert words.startswith("Forward, device 0, stage 0, micro-batch 1, ")
    assert " ms, from " in words
    hover = figure.locator(".hoverlayer .hovertext", has_text="Forward")
    hover.wait_for(state="visible")
    assert "micro-batch 1" in hover.text_content()
    assert figure.locator(".plot").get_attribute("aria-label").startswith("Best split")
    assert "Timeline of" in figure.locator("#gantt_best-words").inner_text()


def test_the_mouse_names_a_box_of_the_timeline(seen):
    figure = seen.page.locator("#gantt_best")
    figure.scroll_into_view_if_needed()
    figure.locator(".plot .main-svg").first.wait_for(state="visible")
    area = figure.locator(".plot .nsewdrag").first.bounding_box()
    seen.page.mouse.move(area["x"] + area["width"] * 0.3, area["y"] + area["height"] * 0.17)
    hover = figure.locator(".hoverlayer .hovertext")
    hover.wait_for(state="visible")
    assert "device 0" in hover.text_content()


@pytest.mark.parametrize("width", [1100, 700])
def test_no_legend_lies_under_the_buttons(chromium, report, width):
    with headless.opened(chromium, report, width) as seen:
        for name in ("mp_vs_rn", "split_size_tradeoff", "gantt_worst", "breakdown"):
            figure = seen.hover(f"#{name}")
            buttons = figure.locator(".modebar").bounding_box()
            words = figure.locator("p.muted").evaluate(
                "line => {const range = document.createRange(); range.selectNodeContents(line);"
                "return range.getBoundingClientRect().right}"
            )
            entries = figure.locator(".legend .traces")
            assert entries.count() > 0 and words <= buttons["x"]
            for entry in entries.all():
                assert entry.bounding_box()["y"] >= buttons["y"] + buttons["height"], name
            assert buttons["y"] >= figure.locator("h3").bounding_box()["y"]


def test_charts_follow_when_the_reader_turns_dark(seen):
    seen.draw_all()
    page = seen.page
    ground = "getComputedStyle(document.querySelector('figure .main-svg')).backgroundColor"
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.emulate_media(color_scheme="dark")
    headless.until(lambda: page.evaluate(ground) == "rgb(20, 24, 29)")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"


def test_print_shows_the_light_static_charts(chromium, report):
    with headless.opened(chromium, report, color_scheme="dark") as seen:
        seen.draw_all()
        page = seen.page
        page.emulate_media(media="print")
        assert page.locator(".interactive:visible").count() == 0
        assert page.locator("figure img:visible").count() == FIGURES
        assert page.locator(".filters:visible").count() == 0
        assert page.locator("figure img.dark:visible").count() == 0
        widths = "images => images.map(image => image.complete && image.naturalWidth)"
        assert all(page.eval_on_selector_all("img.light", widths))
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
            "rgb(255, 255, 255)"
        )
        assert len(page.pdf()) > 50_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_without_javascript_the_static_charts_and_the_table_stand(chromium, report, scheme):
    options = {"java_script_enabled": False, "color_scheme": scheme}
    with headless.opened(chromium, report, **options) as seen:
        page = seen.page
        assert page.locator(f"figure img.{scheme}:visible").count() == FIGURES
        assert page.locator("figure img:visible").count() == FIGURES
        assert page.locator(".interactive:visible").count() == 0
        assert page.locator(".filters:visible").count() == 0
        assert page.locator("table[data-sortable] tbody tr").count() == 12


def test_a_thousand_rows_are_a_small_page(chromium, long_report, record_property):
    assert long_report.stat().st_size < MOST_BYTES
    with headless.opened(chromium, long_report) as seen:
        load = seen.page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
        record_property("milliseconds to load", load)
        assert seen.page.locator("#rows tbody tr").count() == 1000


def test_a_thousand_rows_sort_and_filter(chromium, long_report):
    with headless.opened(chromium, long_report) as seen:
        page = seen.page
        page.get_by_role("searchbox", name="Text").fill("zb-h1 layer7")
        assert page.locator(".filters [role=status]").inner_text() == "8 of 1,000 rows shown"
        page.get_by_role("button", name="Time", exact=True).click()
        assert len(seen.shown_rows()) == 8
        seen.draw_all()
        assert seen.complaints == []
