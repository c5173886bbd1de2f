"""The real TensorBoard reads what Headrace writes, kind by kind.

HEADRACE_TENSORBOARD_PYTHON names a Python that has the tensorboard package, where the
one that runs the tests has not.
"""

import importlib.util
import json
import os
import subprocess
import sys

import pytest

FOLDER = os.path.dirname(__file__)
PYTHON = os.environ.get("HEADRACE_TENSORBOARD_PYTHON", "")
if not PYTHON and importlib.util.find_spec("tensorboard"):
    PYTHON = sys.executable
pytestmark = pytest.mark.skipif(not PYTHON, reason="there is no TensorBoard")
PLACE = "import os, tensorboard; print(os.path.dirname(tensorboard.__path__[0]))"


def ran(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    logdir = str(tmp_path_factory.mktemp("logs"))
    packages = ran(PYTHON, "-c", PLACE).strip()
    ran(sys.executable, os.path.join(FOLDER, "board_program.py"), logdir, packages)
    told = ran(PYTHON, os.path.join(FOLDER, "board_reader.py"), logdir)
    (line,) = [x for x in told.splitlines() if x.startswith("ANSWERS")]
    return json.loads(line.removeprefix("ANSWERS"))


def test_plugins_have_data(answers):
    kinds = (
        "scalars histograms distributions images audio text graphs hparams pr_curves"
    )
    enabled = {name for name, told in answers["plugins"].items() if told["enabled"]}
    assert set(kinds.split()) <= enabled
    runs = "values functions session keras/train pr hp hp/2 hp/4".split()
    assert set(answers["runs"]) == set(runs)


def test_numbers_and_distributions(answers):
    shown = [(step, value) for _, step, value in answers["loss"]]
    assert shown == [(0, 1.0), (1, 0.5), (2, pytest.approx(1 / 3))]
    assert [(s, v) for _, s, v in answers["old"]] == [(0, 0.0), (1, 1.0), (2, 2.0)]
    last = answers["histogram"][2][2]
    assert [row[2] for row in last] == [2.0] * 5
    assert (last[0][0], last[-1][1]) == (0.0, 18.0)
    assert sum(row[2] for row in answers["old histogram"][0][2]) == 5
    assert answers["distribution"][2][2][-1] == [10000, 18.0]


def test_media(answers):
    assert len(answers["images"]) == 1 and answers["picture"] == "\x89PNG"
    assert answers["sounds"][0]["contentType"] == "audio/wav"
    assert "<h1>title</h1>" in answers["text"][0]["text"]


def test_graphs(answers):
    info = answers["graphs"]
    assert info["session"]["run_graph"] and info["functions"]["run_graph"]
    assert info["functions"]["tags"]["product"]["op_graph"]
    assert info["keras/train"]["tags"]["keras"]["conceptual_graph"]
    assert 'name: "old/tags"' in answers["session graph"]
    for name in ("function graph", "traced graph", "step graph"):
        assert 'op: "MatMul"' in answers[name]
    for layer in ("Embedding", "Flatten", "Dense"):
        assert f's: "{layer}"' in answers["model"]


def test_plugins_of_the_package(answers):
    groups = answers["hparams"]["sessionGroups"]
    assert [g["hparams"]["units"] for g in groups] == [2.0, 4.0]
    values = [g["metricValues"][0]["value"] for g in groups]
    assert values == pytest.approx([0.2, 0.4])
    (curve,) = answers["curve"]["pr"]
    assert curve["true_positives"] == [2, 2, 2, 1]
    key = "layer_with_weights-0/embeddings/.ATTRIBUTES/VARIABLE_VALUE"
    assert answers["embeddings"] == [[key, "rows.tsv"]]
