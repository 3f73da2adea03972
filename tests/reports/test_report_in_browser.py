"""The pages in a real browser: charts, table, themes, print, and a long report."""

import itertools
import json
import re

import browser as headless
import fixture_ladder
import fixture_many_rows
import fixture_ranks
import fixture_results
import pytest
from reference_summaries import summarised
from stratagem_reports import __main__ as command

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("report_in_browser")]

FIGURES = 12
MOST_BYTES = 6_000_000


def made(folder, document):
    source = folder / "results.json"
    source.write_text(json.dumps(summarised(document)), encoding="utf-8")
    assert command.main(["report", str(source)]) == 0
    return folder / "report.html"


@pytest.fixture(scope="module")
def report(tmp_path_factory, chromium):
    return made(tmp_path_factory.mktemp("report"), fixture_results.results())


@pytest.fixture(
    scope="module", params=[(300, 1000), pytest.param((1000, 4000), marks=pytest.mark.night)]
)
def long_report(request, tmp_path_factory, chromium):
    """A page of many rows and exchanges, and how many rows it has."""
    rows, exchanges = request.param
    document = fixture_many_rows.many_rows(rows - len(fixture_ranks.STEP_MS))
    document["benchmarks"] += fixture_ranks.rows(exchanges)
    return made(tmp_path_factory.mktemp("long"), document), rows


@pytest.fixture
def seen(chromium, report):
    with headless.opened(chromium, report, color_scheme="light") as page:
        yield page


@pytest.mark.parametrize(("scheme", "width"), headless.VIEWS)
def test_every_chart_is_drawn_without_complaint_or_request(chromium, report, scheme, width):
    with headless.opened(chromium, report, width, color_scheme=scheme) as seen:
        seen.draw_all()
        page = seen.page
        assert page.locator("figure.drawn").count() == FIGURES
        assert page.locator("figure.drawn .picture:visible").count() == 0
        for figure in page.locator("figure").all():
            assert figure.locator(".plot svg.marks path").count() > 10
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.locator("figure details, figure a").count() == 0, "no menu of the library"
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
    assert seen.sorted_by() == {"Median time": "ascending"}
    page.get_by_role("button", name="Median time").click()
    assert seen.sorted_by() == {"Median time": "descending"}
    after = seen.shown_rows()
    assert after[:-1] == before[:-1][::-1] and after[-1] == before[-1]
    assert page.locator("#announcement").inner_text() == "Sorted by Median time, descending"


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


def test_rows_are_chosen_by_strategy_verification_and_marks(seen):
    for label, value, count in (
        ("Strategy", "single", 2),
        ("Strategy", "model_parallel", 1),
        ("Verification", "passed", 11),
        ("Verification", "row failed", 1),
        ("Marks", "waited", 1),
        ("Marks", "no mark", 11),
    ):
        choice = seen.page.get_by_label(label)
        choice.select_option(value)
        assert len(seen.shown_rows()) == count, (label, value)
        choice.select_option(index=0)
        assert len(seen.shown_rows()) == 12, label


def test_a_box_of_the_timeline_says_what_it_is(seen):
    page = seen.page
    figure = seen.hover("#gantt_best")
    figure.locator(".plot").focus()
    page.keyboard.press("Home")
    boxes = [page.locator("#announcement").inner_text()]
    for _ in range(5):
        page.keyboard.press("ArrowRight")
        boxes.append(page.locator("#announcement").inner_text())
    assert boxes[0].startswith("Copy input, device 0, ")
    name = "Forward, device 0, stage 0, micro-batch 1, "
    (words,) = [box for box in boxes if box.startswith(name)]
    assert " ms, from " in words
    told = page.locator(".told")
    assert told.inner_text().replace("\n", ", ") == boxes[-1]
    assert figure.locator(".plot .at").count() == 1
    page.keyboard.press("ArrowLeft")
    assert page.locator("#announcement").inner_text() == boxes[-2]
    page.keyboard.press("Escape")
    assert told.is_hidden() and figure.locator(".plot .at").count() == 0
    assert figure.locator(".plot").get_attribute("aria-label").startswith("Best split")
    assert "Timeline of" in figure.locator("#gantt_best-words").inner_text()


def test_the_mouse_names_a_box_of_the_timeline(seen):
    figure = seen.hover("#gantt_best")
    box = figure.locator(".plot .mark-rect path").nth(4).bounding_box()
    seen.page.mouse.move(box["x"] + 0.2 * box["width"], box["y"] + 0.2 * box["height"])
    told = seen.page.locator(".told", has_text="device 0")
    told.wait_for(state="visible")
    assert told.locator("b").inner_text() in ("Forward", "Idle", "Backward")
    place = told.bounding_box()
    assert place["x"] > box["x"] and place["x"] + place["width"] < 1200
    seen.page.mouse.move(2, 2)
    told.wait_for(state="hidden")


def test_a_timeline_is_zoomed_and_shows_labels_where_they_fit_now(seen):
    figure = seen.hover("#gantt_worst")
    page, texts = seen.page, figure.locator(".plot .role-mark.mark-text text")

    def labels():
        return [text for text in texts.all_text_contents() if text]

    before = labels()
    assert not any(label.startswith("F") for label in before)
    page.keyboard.down("Control")
    for _ in range(12):
        page.mouse.wheel(0, -120)
    page.keyboard.up("Control")
    headless.until(lambda: any(re.fullmatch(r"F\d+", label) for label in labels()))
    figure.locator(".plot").dblclick()
    headless.until(lambda: labels() == before)


@pytest.mark.parametrize("width", [390, 700, 1280])
@pytest.mark.parametrize("made_of", [fixture_results.results, fixture_ladder.ladder])
def test_words_of_a_chart_are_whole_and_do_not_touch(tmp_path, chromium, width, made_of):
    with headless.opened(chromium, made(tmp_path, made_of()), width) as seen:
        seen.draw_all()
        for figure in seen.page.locator("figure").all():
            name = figure.get_attribute("id")
            plot, *entries = headless.boxes(figure.locator(".plot, .legend li"))
            for box in headless.boxes(figure.locator(".plot svg text")):
                assert plot.holds(box), (name, box)
            for axis in figure.locator(".plot .role-axis-label").all():
                labels = headless.boxes(axis.locator("text"))
                assert labels and "\u2026" not in "".join(label.text for label in labels), name
                for one, other in itertools.combinations(labels, 2):
                    assert not one.meets(other), (name, one, other)
            for one, other in itertools.combinations(entries, 2):
                assert not one.meets(other), (name, one, other)
            assert all(plot.left <= box.left and box.right <= plot.right for box in entries)


def test_no_word_of_a_note_is_broken_on_a_phone(tmp_path, chromium):
    document = fixture_results.results()
    for entry in document["benchmarks"]:
        if entry["run_type"] == "iteration" and "stratagem" in entry:
            entry["stratagem"]["predicted_from"] = {"age_s": 0.0, "doubt": "a neighbour"}
    with headless.opened(chromium, made(tmp_path, document), 390) as seen:
        assert "Unreliable predictions: " in seen.page.locator("#measured").inner_text()
        seen.draw_all()
        assert seen.broken_words() == []


def test_charts_follow_when_the_reader_turns_dark(seen):
    seen.draw_all()
    page = seen.page
    ground = "getComputedStyle(document.querySelector('.plot svg.marks')).backgroundColor"
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
        assert page.locator("figure .picture svg:visible").count() == FIGURES
        assert page.locator(".filters:visible").count() == 0
        fill = "getComputedStyle(document.querySelector('.picture svg rect')).fill"
        assert page.evaluate(fill) == "rgb(255, 255, 255)"
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
            "rgb(255, 255, 255)"
        )
        assert len(page.pdf()) > 50_000


def test_without_javascript_the_pictures_and_the_table_stand(chromium, report):
    with headless.opened(chromium, report, java_script_enabled=False) as seen:
        page = seen.page
        pictures = page.locator("figure .picture svg:visible")
        assert pictures.count() == FIGURES
        assert all(picture.bounding_box()["width"] > 300 for picture in pictures.all())
        assert page.locator(".interactive:visible").count() == 0
        assert page.locator(".filters:visible").count() == 0
        assert page.locator("table[data-sortable] tbody tr").count() == 12


def test_many_rows_are_a_small_page(chromium, long_report, record_property):
    page, rows = long_report
    assert page.stat().st_size < MOST_BYTES
    with headless.opened(chromium, page) as seen:
        load = seen.page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
        record_property("milliseconds to load", load)
        assert seen.page.locator("#rows tbody tr").count() == rows


def test_many_rows_sort_and_filter(chromium, long_report):
    path, rows = long_report
    with headless.opened(chromium, path) as seen:
        page = seen.page
        page.get_by_role("searchbox", name="Text").fill("zb-h1 layer7")
        assert page.locator(".filters [role=status]").inner_text() == f"8 of {rows:,} rows shown"
        page.get_by_role("button", name="Median time").click()
        assert len(seen.shown_rows()) == 8
        seen.draw_all()
        assert seen.complaints == []
