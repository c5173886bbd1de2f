"""The pages of docs/guide: their programs run and print what stands below them."""

import contextlib
import io
import os
import pathlib
import re
import subprocess

import headrace as tf
import pytest

ROOT = pathlib.Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "guide").glob("*.md"))
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_programs_of_a_page(page, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    program, wanted = [], []
    for language, text in blocks:
        if language == "python":
            program.append(text)
        elif language == "text":
            wanted.append((len(program), text))
    printed, names, ran = [], {"__name__": "__main__"}, 0
    for upto, text in [*wanted, (len(program), None)]:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            for number, source in enumerate(program[ran:upto], ran):
                # A file of its own for each block, so that AutoGraph finds its source.
                file = tmp_path / f"block_{number}.py"
                file.write_text(source)
                exec(compile(source, str(file), "exec"), names)  # noqa: S102
        ran = upto
        printed.append((out.getvalue(), text))
    for got, text in printed:
        assert got == (text or ""), page.name


def test_links_of_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), (page.name, target)


def test_the_program_of_the_page_on_cc_is_the_example():
    page = (ROOT / "docs/guide/8_cc.md").read_text(encoding="utf-8")
    (shown,) = [text for language, text in BLOCK.findall(page) if language == "cpp"]
    assert shown == (ROOT / "examples/ten_minutes.cc").read_text(encoding="utf-8")


def test_the_example_learns(tmp_path):
    program = ROOT / "build/examples/ten_minutes"
    if not program.exists():
        pytest.skip("the C++ examples were not built")
    told = subprocess.run(
        [program, str(tmp_path)], capture_output=True, text=True, check=True
    ).stdout
    assert told.endswith("learned: yes\nthe same: yes\n")
    assert tf.train.latest_checkpoint(str(tmp_path)) is not None
    assert os.listdir(tmp_path)
