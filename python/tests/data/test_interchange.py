"""Iterators that TensorFlow saved go on here, and ours go on there."""

import json
import os
import pathlib
import subprocess
import sys

import headrace as tf
import pytest

sys.path.insert(0, os.path.dirname(__file__))

import saved_pipelines  # noqa: E402

GOLDEN = pathlib.Path(__file__).parents[3] / "tests" / "golden" / "iterators"
REST = json.loads((GOLDEN / "rest.json").read_text(encoding="utf8"))
PYTHON = os.environ.get("HEADRACE_TENSORFLOW_PYTHON", "")


@pytest.fixture(autouse=True)
def _here(monkeypatch):
    monkeypatch.chdir(saved_pipelines.HERE)


@pytest.mark.parametrize("name", list(REST))
def test_upstreams_place_is_taken_up(name):
    iterator = saved_pipelines.restored(tf, str(GOLDEN), name)
    assert saved_pipelines.rest(iterator) == REST[name]


@pytest.mark.parametrize("name", list(REST))
def test_our_place_is_upstreams(name):
    """Both programs go on with the same elements."""
    iterator = saved_pipelines.begun(tf, name)
    assert saved_pipelines.rest(iterator) == REST[name]


def test_our_states_are_taken_up_here(tmp_path):
    saved_pipelines.write(tf, str(tmp_path))
    for name, expected in REST.items():
        iterator = saved_pipelines.restored(tf, str(tmp_path), name)
        assert saved_pipelines.rest(iterator) == expected, name


@pytest.mark.skipif(not PYTHON, reason="HEADRACE_TENSORFLOW_PYTHON is not set")
def test_our_states_are_taken_up_there(tmp_path):
    saved_pipelines.write(tf, str(tmp_path))
    done = subprocess.run(
        [PYTHON, saved_pipelines.__file__, "read", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": ""},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.strip() == f"read {len(REST)}", done.stdout
