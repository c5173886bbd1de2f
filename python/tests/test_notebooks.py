"""The notebooks of examples/notebooks: their cells give the outputs that are stored."""

import ast
import json
import os
import pathlib
import re
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, os.path.join(ROOT, "tools"))
import notebooks

PAGES = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def code_cells(path):
    return [c for c in notebooks.read(path)["cells"] if c["cell_type"] == "code"]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_cells_give_what_is_stored(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = notebooks.outputs_of(notebooks.read(page), str(tmp_path))
    told = 0
    for cell, outputs in zip(code_cells(page), made, strict=True):
        stored = [
            {k: v for k, v in o.items() if k not in ("execution_count", "metadata")}
            for o in cell["outputs"]
        ]
        assert outputs == stored, "".join(cell["source"])
        told += len(outputs)
    assert told > 3


def test_there_are_three():
    assert [p.stem for p in PAGES] == [
        "1_first_steps",
        "2_keras_model",
        "3_data_pipeline",
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.stem)
def test_they_are_notebooks_as_nbformat_has_them(page):
    notebook = notebooks.read(page)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in notebook["cells"]]
    assert len(set(ids)) == len(ids)
    counts = [cell["execution_count"] for cell in code_cells(page)]
    assert counts == list(range(1, len(counts) + 1))
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            ast.parse(source)
        for target in re.findall(r"\]\(([^)#]+)\)", source):
            assert cell["cell_type"] == "code" or (page.parent / target).exists()
    # No path or address of the machine that made them.
    assert not re.search(r"/tmp|/home|/root|/work| at 0x", json.dumps(notebook))


def test_a_model_is_shown_as_a_table():
    first = code_cells(PAGES[1])[0]["outputs"][0]["data"]
    assert "<td" in "".join(first["text/html"])
    assert "Total params: 65" in "".join(first["text/html"])


def test_what_differs_is_seen(tmp_path):
    cell = {"cell_type": "code", "source": ["print('a')\n", "1 + 1"]}
    assert notebooks.outputs_of({"cells": [cell]}, str(tmp_path)) == [
        [
            {"name": "stdout", "output_type": "stream", "text": ["a\n"]},
            {"output_type": "execute_result", "data": {"text/plain": ["2"]}},
        ]
    ]


def test_outputs_are_stored(tmp_path):
    path = tmp_path / "a.ipynb"
    cell = {"cell_type": "code", "source": ["[1,\n", " 2]"], "outputs": []}
    path.write_text(json.dumps({"cells": [cell], "nbformat": 4}))
    notebooks.write(str(path))
    (stored,) = notebooks.read(path)["cells"]
    assert stored["execution_count"] == 1
    assert stored["outputs"] == [
        {
            "output_type": "execute_result",
            "data": {"text/plain": ["[1, 2]"]},
            "execution_count": 1,
            "metadata": {},
        }
    ]
