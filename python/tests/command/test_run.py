"""headrace run and bench."""

import json

import numpy as np
import pytest
from command_line import golden

import headrace as tf

PLAIN = golden("saved_models/plain")


class Model(tf.Module):
    @tf.function(
        input_signature=[
            tf.TensorSpec([None, 2], tf.float32, name="x"),
            tf.TensorSpec([], tf.string, name="word"),
        ]
    )
    def f(self, x, word):
        return {"y": x * 2.0, "said": tf.strings.join([word, "!"])}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("model"))
    tf.saved_model.save(Model(), folder)
    return folder


def test_prints_in_the_words_of_saved_model_cli(line):
    assert line("run", PLAIN, "--input", "x=[1, 2]") == (
        "Result for output key twice:\n[2. 4.]\nResult for output key y:\n[4. 7.]\n"
    )
    out = line("run", PLAIN, "--signature_def", "looped", "-i", "n=3")
    assert out.startswith("Result for output key output_0:\n")


def test_inputs_of_all_forms(line, model, tmp_path):
    np.save(tmp_path / "x.npy", np.float32([[1, 2]]))
    np.save(tmp_path / "columns.npy", np.asfortranarray(np.float32([[1, 2], [3, 4]])))
    (tmp_path / "x.json").write_text("[[5, 6]]")
    (tmp_path / "all.json").write_text(json.dumps({"x": [[7, 8]], "word": "hi"}))
    word = ["--input", "word=hi there"]
    ways = {
        "x=" + str(tmp_path / "x.npy"): [[2, 4]],
        "x=@" + str(tmp_path / "x.json"): [[10, 12]],
        "x=" + str(tmp_path / "columns.npy"): [[2, 4], [6, 8]],
        "x=[[1, 0.25], [true, 3e1]]": [[2, 0.5], [2, 60]],
    }
    for way, y in ways.items():
        assert line.json("run", model, "--input", way, *word) == {
            "said": "hi there!",
            "y": y,
        }
    out = line.json("run", model, "--inputs", tmp_path / "all.json")
    assert out == {"said": "hi!", "y": [[14, 16]]}
    out = line.json("run", model, "-i", "x=[[1,2]]", "-i", 'word={"b64": "/w=="}')
    assert out["said"] == {"b64": "/yE="}


@pytest.mark.parametrize(
    "given, message",
    [
        (["x=[[1, 2], [3]]"], "input x: lists of level 2 differ: expected 2"),
        (["x=[1, 2]"], "input x: expected float32 of shape [?,2], got float32"),
        (['x=[["a", 2]]'], 'input x: expected a float32, got "a"'),
        (["x=[[1, 2]"], "input x: JSON: expected , or ] at character 7"),
        (["x=none.npy"], "input x: none.npy"),
        (["z=1"], "there is no input z, the inputs are: "),
        ([], "input word: it is not given"),
    ],
)
def test_inputs_that_do_not_fit(line, model, given, message):
    args = [part for text in given for part in ("--input", text)]
    if given and not given[0].startswith("z"):
        args += ["--input", "word=a"]
    assert message in line.fails("run", model, *args)


def test_damaged_npy(line, model, tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.float32([[1, 2]]))
    whole = path.read_bytes()
    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut])
        err = line.fails("run", model, "-i", f"x={path}", "-i", "word=a")
        assert "input x: not a .npy file" in err
    path.write_bytes(whole.replace(b"(1, 2)", b"(9999999999999, 999999)"[:6]))
    line.fails("run", model, "-i", f"x={path}", "-i", "word=a")


def test_outputs_as_files(line, model, tmp_path):
    given = ["-i", "x=[[1, 2]]", "-i", "word=a"]
    out = line("run", model, *given, "--outdir", tmp_path / "out")
    assert f"Output y is saved to {tmp_path}/out/y.npy\n" in out
    y = np.load(tmp_path / "out/y.npy")
    assert y.dtype == np.float32 and y.tolist() == [[2, 4]]
    assert np.load(tmp_path / "out/said.npy") == b"a!"
    err = line.fails("run", model, *given, "--outdir", tmp_path / "out")
    assert "exists; --overwrite replaces it" in err
    line("run", model, *given, "--outdir", tmp_path / "out", "--overwrite")


def test_errors_of_ops_name_the_node(line):
    err = line.fails("run", PLAIN, "--input", "x=[1, 2, 3]")
    assert "headrace run: " in err


def test_bench(line, model):
    measured = line.json("bench", model, "--runs", 5, "--warmup", 1, "--batch", 3)
    assert measured["calls"] == 5
    assert 0 < measured["min_ms"] <= measured["p50_ms"] <= measured["max_ms"]
    assert measured["peak_bytes"] > 1_000_000
    out = line("bench", model, "--runs=3")
    assert "3 calls: mean" in out and "peak memory" in out
    err = line.fails("bench", model, "--runs", 0, code=2)
    assert "--runs needs a whole number from 1" in err


@pytest.fixture(scope="module")
def parser_model(tmp_path_factory):
    """A model whose signature parses tf.train.Examples."""

    class Parser(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def parse(self, examples):
            features = {
                "age": tf.io.FixedLenFeature([2], tf.float32),
                "name": tf.io.FixedLenFeature([], tf.string),
                "id": tf.io.FixedLenFeature([], tf.int64, default_value=7),
            }
            return tf.io.parse_example(examples, features)

    folder = str(tmp_path_factory.mktemp("models") / "parser")
    model = Parser()
    tf.saved_model.save(model, folder, signatures=model.parse)
    return folder


def test_inputs_of_examples(line, parser_model, tmp_path):
    examples = '[{"age": [22.0, 1], "name": ["x"], "id": [-3]}, {"age": [0.5, 2], "name": ["y"]}]'
    given = tmp_path / "examples.json"
    given.write_text(examples)
    for text in (examples, f"@{given}"):
        out = line.json("run", parser_model, "--input_examples", f"examples={text}")
        assert out == {
            "age": [[22.0, 1.0], [0.5, 2.0]],
            "id": [-3, 7],
            "name": ["x", "y"],
        }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"age": [1.0]}', "expected a list of objects"),
        ("[1]", "expected a list of objects"),
        ('[{"age": 1.0}]', "feature age: feature value must be a list"),
        ('[{"age": [true]}]', "feature age: expected texts or numbers"),
        ('[{"age": ["a", 1]}]', "feature age: expected texts, got 1"),
        ('[{"age": [1, 1.5]}]', "feature age: expected whole numbers, got 1.5"),
        ('[{"age": [1.5, "a"]}]', "feature age: expected numbers, got a"),
        ('[{"age": [1.5]', "input examples:"),
    ],
)
def test_examples_that_do_not_fit(line, parser_model, text, message):
    given = f"examples={text}"
    assert message in line.fails("run", parser_model, "--input_examples", given)
