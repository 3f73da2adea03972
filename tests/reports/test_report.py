"""report.html: what it says, and that it needs nothing from outside."""

import json
import re
from html.parser import HTMLParser

import fixture_results
import pytest
from reference_summaries import summarised
from stratagem_reports import __main__ as command

FIGURES = 12
VOID = {"meta", "link", "img", "br", "hr", "source", "wbr", "input"}


class Page(HTMLParser):
    """Collects tags, attributes and the text of table cells; complains about bad nesting."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text = [], [], []
        self.rows: list[list[str]] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)
        if self.rows and self.open and any(tag in ("td", "th") for tag in self.open):
            self.rows[-1][-1] += data

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    def run(document):
        folder = tmp_path_factory.mktemp("report")
        source = folder / "results.json"
        source.write_text(json.dumps(summarised(document)), encoding="utf-8")
        assert command.main(["report", str(source)]) == 0
        text = (folder / "report.html").read_text(encoding="utf-8")
        return text, Page(text)

    return run


@pytest.fixture(scope="module")
def whole(make):
    return make(fixture_results.results())


def test_nothing_outside_is_referred_to(whole):
    text, page = whole
    assert set(re.findall(r"\w+://[\w./-]+", text)) == {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xlink",
        "http://www.w3.org/2000/xmlns/",
        "https://vega.github.io/schema/vega-lite/v6.json",
    }
    assert set(re.findall(r"url\(.*?\)", text)) >= {"url(#stratagem-idle)"}
    assert "@import" not in text and page.all("link") == []
    for tag, attributes in page.tags:
        for key in ("src", "srcset", "href", "data", "action"):
            value = attributes.get(key)
            assert value is None or value.startswith(("data:", "#")), (tag, key, value[:60])
    assert all("src" not in attributes for attributes in page.all("script"))


def test_every_chart_is_inside_in_both_themes_with_words(whole):
    text, page = whole
    assert len(page.all("figure")) == len(page.all("figcaption")) == FIGURES
    pictures = [item for item in page.all("div") if item.get("class") == "picture"]
    assert len(pictures) == FIGURES
    assert all(item["role"] == "img" and len(item["aria-label"]) > 40 for item in pictures)
    drawn = text.split('class="picture"')[1:]
    assert all("light-dark(#FFFFFF,#14181D)" in part.split("</svg>")[0] for part in drawn)
    assert text.count('<pattern id="stratagem-idle"') == 1


def test_every_chart_comes_with_its_specification(whole):
    text, _ = whole
    found = re.findall(r'<script type="application/json">(.*?)</script>', text)
    assert len(found) == FIGURES
    for specification in map(json.loads, found):
        assert specification["layer"] and specification["width"] == "container"
    assert text.count("window.vegaEmbed") == 1


def test_the_policy_names_the_two_scripts_and_no_other_source(whole):
    _, page = whole
    policy = next(item["content"] for item in page.all("meta") if "http-equiv" in item)
    assert re.fullmatch(r"(?s).*; script-src( 'sha256-[\w+/=]{44}'){2}", policy)
    assert "default-src 'none'" in policy and "eval" not in policy


def test_the_table_has_every_row_by_time_and_failures_last(whole):
    _, page = whole
    rows = [row for row in page.rows if row and "resnet50/" in row[0]]
    assert len(rows) == 12
    times = [float(row[1].split()[0]) for row in rows[:-1]]
    assert times == sorted(times)
    assert rows[0][0].startswith("Single device, 2 cores") and rows[0][3] == "fastest"
    error = "rank 0: out of memory <allocating 4 GiB> (host localhost, last action: 0F0)"
    assert rows[-1][1] == f"failed: {error}"
    best = next(row for row in rows if "split:12/" in row[0])
    assert "98.4%, 7 samples" in best[2]
    assert re.fullmatch(r"\d+\.\d% / 20\.0%", best[6])
    assert best[10] == "passed3.1e-13 of 1.0e-09; in float32 2.4e-07 of 3.8e-06"
    assert next(row for row in rows if "split:16/" in row[0])[11].startswith("waited")


def verdict(text):
    """The first words of the summary."""
    summary = text.split('id="summary-title">Summary</h2>')[1]
    assert summary.split()[0] == "<p", "nothing stands before the verdict"
    return re.search('<p class="verdict">(.*?)</p>', summary)[1]


def test_the_report_begins_with_who_wins_by_how_much_and_how_sure(whole):
    assert verdict(whole[0]) == (
        "Single (all cores) is the fastest of 11 rows at 95% confidence. With a median step time "
        "of 1.34 s, it is 1.23\u00d7 as fast as the next row, Pipeline (split 12, 1F1B)."
    )


def test_the_summary_adds_intervals_baselines_and_predictions(whole):
    text = " ".join(" ".join(whole[1].text).split())
    assert re.search(r"1\.3\d\u00d7 as fast as the single device", text)
    assert re.search(r"1\.3\d\u00d7 as fast as model parallel", text)
    assert "within this run" in text
    assert "best pipeline is slower than it" in text
    assert "Fastest row: median step time" in text and "Best split: median step time" in text
    assert re.search(r"prediction is off by 3\.\d% on average", text)
    assert "1 row failed" in text


def test_rows_that_disturbed_launches_would_decide_are_not_set_beside_each_other(tmp_path):
    document = fixture_results.results(failed=False)
    for entry in document["benchmarks"]:
        if entry["run_type"] == "iteration":
            entry["stratagem"]["marks"] = ["disturbed"]
    source = tmp_path / "results.json"
    source.write_text(json.dumps(summarised(document)), encoding="utf-8")
    assert command.main(["report", str(source)]) == 0
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    text = " ".join(page.text)
    assert "disturbed launches would decide it" in text
    assert "is not significantly different from it" in text
    assert not re.search(r"\d\.\d\d\u00d7", text)
    ranked = [row[3] for row in page.rows if row and "resnet50/" in row[0]]
    assert ranked[0] and set(ranked[1:]) == {"cannot telldisturbed"}


def test_configuration_machine_and_measuring_are_told(whole):
    text = " ".join(whole[1].text)
    for words in (
        "Example EPYC 2-core",
        "Numa nodes",
        "2.11.0",
        "channels_last",
        "forward, backward and the optimizer",
        "fresh set of processes",
        "random order",
        "copy of the input",
        "0123456789abcdef",
    ):
        assert words in text, words


def test_landmarks_language_and_captions(whole):
    _, page = whole
    assert page.all("html") == [{"lang": "en"}]
    for tag in ("header", "nav", "main", "footer", "h1", "caption"):
        assert len(page.all(tag)) == 1, tag
    identifiers = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    targets = [attributes["href"][1:] for attributes in page.all("a")]
    assert set(targets) <= set(identifiers)
    assert all(attributes.get("scope") for attributes in page.all("th"))


def test_overlapping_rows_are_not_ranked(make):
    document = fixture_results.results()
    for row in document["benchmarks"]:
        if "stratagem" in row and not row.get("error_occurred"):
            row["stratagem"]["step_ms"] = [100.0, 140.0]
    text, _ = make(document)
    assert verdict(text) == (
        "No row is clearly the fastest at 95% confidence. Single device has the lowest median step "
        "time, 120 ms, but Single (all cores), with 120 ms, and 9 other rows are not significantly "
        "slower."
    )
    assert text.count(">cannot tell<") == 10
    assert "Lowest median step time" in text and ">lowest median<" in text
    assert ">fastest<" not in text


def test_a_single_row_is_no_winner(make):
    document = fixture_results.results()
    document["benchmarks"] = [
        row for row in document["benchmarks"] if row["run_name"].endswith("cores:2")
    ]
    text, _ = make(document)
    assert verdict(text) == (
        "Only Single (all cores) can be ranked. Its median step time is 1.34 s."
    )


def test_fewer_than_six_samples_say_so(make):
    text, _ = make(fixture_results.results(repetitions=4))
    assert "87.5%" in text and "short of 95%" in text


def test_tutorial_report_says_what_its_bars_are(make):
    text, _ = make(fixture_results.results("tutorial", (1, 12, 20), False, 10))
    assert "standard deviation over 10 repetitions" in text
    assert "whole training call" in text
    assert "prediction from" not in text


def test_left_out_charts_are_listed(make):
    document = fixture_results.results()
    document["benchmarks"] = [row for row in document["benchmarks"] if "pipeline" in row["name"]]
    text, page = make(document)
    assert "<code>mp_vs_rn</code>: no working row of single and model_parallel" in text
    assert len(page.all("figure")) == 7


def test_names_are_escaped(make):
    document = fixture_results.results()
    document["context"]["stratagem"]["fingerprint"]["hardware"]["cpu_model"] = "<script>x</script>"
    for entry in document["benchmarks"]:
        entry["run_name"] = entry["name"] = f"{entry['run_name']}/cut:<script>x</script>"
    document["benchmarks"][0]["stratagem"]["marks"] = ['"><img src=x>']
    document["context"]["stratagem"]["command_line"] = "run </code><script>x</script>"
    document["context"]["stratagem"]["disturbances"] = ["</li><script>x</script>"]
    text, page = make(document)
    assert "<script>x" not in text and text.count("&lt;script&gt;x&lt;") >= 24
    assert page.all("img") == [] and len(page.all("script")) == 2 + len(page.all("figure"))


def test_what_predictions_and_intervals_rest_on_is_said(make):
    document = fixture_results.results(splits=(12,), failed=False)
    for entry in document["benchmarks"]:
        if entry["run_type"] != "iteration":
            continue
        own = entry["stratagem"]
        own["predicted_from"] = {"age_s": 0.0, "doubt": ""}
        if entry["repetition_index"] == 1:
            own["marks"] = [*own["marks"], "disturbed"]
    text, _ = make(document)
    assert "Predictions are made from stage costs that were measured in this run." in text
    assert "4 of 28 launches were disturbed" in text and "Unreliable predictions" not in text
    for entry in document["benchmarks"]:
        if entry["run_type"] == "iteration":
            own = entry["stratagem"]
            own["predicted_from"] = {"age_s": 600.0, "doubt": "a neighbour"}
            if own["predicted_ms"]:
                ends = {"low_ms": 0.98 * own["predicted_ms"], "high_ms": 1.04 * own["predicted_ms"]}
                own["predicted_from"] |= ends
    text, _ = make(document)
    assert "With the quartiles of the costs they are 2.0% shorter to 4.0% longer." in text
    assert "were measured 600 s before" in text
    assert "Unreliable predictions: " in text and text.count("(a neighbour)") == 4


def test_what_aten_computed_in_place_of_our_kernels_is_said_beside_the_row(make):
    document = fixture_results.results(splits=(12,), failed=False)
    text, _ = make(document)
    assert "computed with" not in text and "aten_kernels" not in text
    kernels = "own; ATen's for convolution: reduced precision"
    for entry in document["benchmarks"]:
        if entry["run_type"] == "iteration" and entry["run_name"].startswith("single"):
            entry["stratagem"] |= {"kernels": kernels, "marks": ["aten_kernels"]}
        elif entry["run_type"] == "iteration":
            entry["stratagem"]["config"]["kernels"] = "reference"
    text, page = make(document)
    shown = kernels.replace("'", "&#39;")
    assert f"computed with these kernels: {shown}." in text
    assert "Rows with kernels:reference computed with ATen&#39;s functions alone." in text
    beside = [row[0] for row in page.rows if kernels in row[-1]]
    assert beside and all(name.startswith("Single device") for name in beside)
