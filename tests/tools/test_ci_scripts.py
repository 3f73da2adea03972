"""What the workflows call, with stubs for GitHub's command and for the builds."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {
    "GITHUB_REPOSITORY": "us/it", "HEAD_SHA": "c0ffee", "HEAD_OWNER": "them", "HEAD_BRANCH": "b",
}  # fmt: skip


def program(path: Path, body: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{body}\n")
    path.chmod(0o755)


@pytest.fixture
def post(tmp_path):
    """Posts a comparison of these verdicts; gh's calls, one a line, with each file's text."""

    def run(verdicts, regression=False, pull_request="7", comment=""):
        calls = tmp_path / "calls"
        calls.write_text("")
        program(tmp_path / "bin/gh", f"""
            for word; do case $word in
              *=@*) word="${{word%%@*}}$(<"${{word#*@}}")" ;;
            esac; printf '%s ' "$word" | tr '\\n' ' '; done >>{calls}
            echo >>{calls}
            case "$*" in
              *"--method GET"*/pulls*) echo {pull_request} ;;
              *"--paginate"*) echo {comment} ;;
            esac""")
        rows = [{"verdict": verdict} for verdict in verdicts]
        document = {"regression": regression, "summary": "It went so.", "rows": rows}
        (tmp_path / "comparison.json").write_text(json.dumps(document))
        (tmp_path / "comparison.md").write_text("### It went so.\n")
        path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
        subprocess.run(
            [ROOT / "tools/post_comparison", tmp_path, "exact"], check=True, timeout=30,
            env={**os.environ, **ENVIRONMENT, "PATH": path},
        )  # fmt: skip
        return calls.read_text().splitlines()

    return run


@pytest.mark.parametrize(("verdicts", "regression", "conclusion"), [
    (["same", "faster"], False, "success"),
    (["same", "does more"], False, "success"),
    (["same", "cannot tell"], False, "neutral"),
    (["too few launches"], False, "neutral"),
    (["cannot tell", "slower"], True, "failure"),
])
def test_a_check_is_neutral_where_nothing_could_be_told(post, verdicts, regression, conclusion):
    check = post(verdicts, regression)[0]
    assert "repos/us/it/check-runs" in check and "head_sha=c0ffee" in check
    assert f"conclusion={conclusion} " in check
    assert "output[title]=It went so." in check and "### It went so." in check


def test_the_comment_is_made_once_and_then_replaced(post):
    _, pulls, comments, made = post(["same"])
    assert "head=them:b" in pulls and 'select(.head.sha == "c0ffee")' in pulls
    assert "repos/us/it/issues/7/comments" in comments and "<!-- stratagem exact -->" in comments
    assert "PATCH" not in made and "body=<!-- stratagem exact --> ### It went so." in made
    *_, replaced = post(["same"], comment="42")
    assert "--method PATCH repos/us/it/issues/comments/42 " in replaced
    assert len(post(["same"], pull_request="")) == 2, "no open pull request has this head"


def test_a_folder_without_a_comparison_is_one_line(tmp_path):
    done = subprocess.run(
        [ROOT / "tools/post_comparison", tmp_path, "exact"], env={**os.environ, **ENVIRONMENT},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == f"tools/post_comparison: {tmp_path}: no comparison.json and comparison.md in it\n"


def test_a_variable_that_is_not_set_is_one_line(tmp_path):
    others = {key: value for key, value in os.environ.items() if key not in ENVIRONMENT}
    done = subprocess.run(
        [ROOT / "tools/post_comparison", tmp_path, "exact"], env=others,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and "GITHUB_REPOSITORY is not set" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rate"], "--rate needs a value"),
        (["--port", "x", "true"], "--port x: expected a port from 1 to 65535"),
        (["no_such_command"], "no_such_command: no such command"),
    ],
)
def test_two_hosts_refuses_in_one_line(arguments, words):
    done = subprocess.run(
        [ROOT / "tools/two_hosts", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == f"two_hosts: {words}\n"


def test_a_description_s_lines_accept_increases(tmp_path):
    program(tmp_path / "head/bin/stratagem", 'printf "%s\\n" "$@"')
    text = "Why.\r\naccept: aten_operators=ddp/*\r\naccept:  flops_per_step=single/mlp \nI accept: $(exit 9)=x\n"
    done = subprocess.run(
        [ROOT / "tools/compare_builds", "base", tmp_path / "head", tmp_path / "out",
         "--exact-only", f"--description={text}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    words = done.stdout.splitlines()
    assert [word for word in words if word.startswith("--accept")] == [
        "--accept=aten_operators=ddp/*", "--accept=flops_per_step=single/mlp",
    ]  # fmt: skip
    assert not any(word.startswith("--description") or "exit 9" in word for word in words)
