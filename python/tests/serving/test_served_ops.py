"""--op_library: ops from a shared library in C, for models that want them."""

import os
import pathlib
import shutil
import subprocess

import pytest
import running
import small_models

pytestmark = running.needs_server

ROOT = pathlib.Path(running.ROOT)
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """tests/c/library/ops.c as a user compiles it: nothing is linked to it."""
    if COMPILER is None:
        pytest.skip("no C compiler")
    made = tmp_path_factory.mktemp("library") / "ops.so"
    env = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    subprocess.run(
        [COMPILER, "-std=c11", "-shared", "-fPIC", f"-I{ROOT / 'include'}"]
        + [str(ROOT / "tests/c/library/ops.c"), "-o", str(made)],
        check=True,
        env=env,
    )
    return made


@pytest.fixture
def model(tmp_path):
    """y = 3 x, by an op that the engine lacks."""
    (tmp_path / "m").mkdir()
    nodes = [
        small_models.placeholder("x"),
        small_models.node("y", "MyScale", "x", T=small_models.FLOAT, factor="i: 3"),
    ]
    small_models.write(tmp_path / "m" / "1", nodes, {"x": "x:0"}, {"y": "y:0"})
    return f"--model_base_path={tmp_path / 'm'}"


def test_a_model_with_an_op_of_a_library_serves(library, model, tmp_path):
    flags = [f"--op_library={library}", model, "--model_name=m"]
    with running.server(tmp_path, *flags) as server:
        response = server.predict("m", x=[1.5, 2.0])
        assert list(response.outputs["y"].float_val) == [4.5, 6]


def failure_of(tmp_path, *flags):
    with pytest.raises(AssertionError) as error:
        with running.server(tmp_path, "--max_num_load_retries=0", *flags):
            pass
    return str(error.value)


def test_without_the_library_the_model_says_what_it_lacks(model, tmp_path):
    assert "MyScale" in failure_of(tmp_path, model)


def test_libraries_that_cannot_be_loaded_are_named(library, model, tmp_path):
    text = failure_of(tmp_path, f"--op_library={library},/no/such.so", model)
    assert "Failed to start server. Error: NOT_FOUND: --op_library=/no/such.so" in text
    assert "No such file" in text
    wrong = tmp_path / "wrong.so"
    wrong.write_text("this is no library")
    text = failure_of(tmp_path, f"--op_library={wrong}", model)
    assert f"--op_library={wrong}: " in text
    assert "invalid ELF header" in text or "file too short" in text
