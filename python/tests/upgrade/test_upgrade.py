"""Programs of TensorFlow 1.x, rewritten as TensorFlow's own script does."""

import json
import os

import pytest

from headrace import _command
from headrace.upgrade import command, notebooks
from headrace.upgrade.report import Report
from headrace.upgrade.rewrite import rewrite
from headrace.upgrade.rules import new_name

GOLDEN = os.path.join(os.path.dirname(__file__), "../../../tests/golden/upgrade")
PROGRAMS = sorted(os.listdir(os.path.join(GOLDEN, "in")))
# TensorFlow has lost these names, and its script with them; they are here.
KEPT_HERE = ("layers.", "estimator.")


def read(*path):
    with open(os.path.join(GOLDEN, *path), encoding="utf-8") as f:
        return f.read()


@pytest.mark.parametrize("mode", ["DEFAULT", "SAFETY"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_and_reports_are_tensorflows(name, mode):
    old = read("in", name)
    if name.endswith(".ipynb"):
        done = notebooks.rewrite(old, lambda text: rewrite(text, mode))
        assert json.loads(done.text) == json.loads(read(mode, name))
    else:
        done = rewrite(old, mode)
        assert done.text == read(mode, name)
    report = Report()
    shown = name.replace(".program", ".py")
    report.add(f"in/{shown}", f"{mode}/{shown}", done)
    assert report.text() == read(mode, name + ".report")


def test_every_name_is_what_tensorflow_makes_of_it():
    wrong = []
    for line in read("names.txt").splitlines():
        old, new = line.split()
        if new_name(old) != new and not old.startswith(KEPT_HERE):
            wrong.append((old, new, new_name(old)))
    assert not wrong


def test_what_is_here_still_is_kept():
    done = rewrite("import tensorflow as tf\ntf.layers.dense(x, 3)\n")
    assert done.text.endswith("tf.compat.v1.layers.dense(x, 3)\n")


def test_the_command_writes_program_and_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text("import tensorflow as tf\ntf.log(x)\n")
    words = ["upgrade", "--infile", "a.py", "--outfile", "b.py"]
    assert _command.run(words) == 0
    assert (
        tmp_path / "b.py"
    ).read_text() == "import tensorflow as tf\ntf.math.log(x)\n"
    assert "2:0: INFO: Renamed 'tf.log'" in (tmp_path / "report.txt").read_text()
    printed = capsys.readouterr().out
    assert "INFO line 2:0: Renamed 'tf.log' to 'tf.math.log'" in printed
    assert "Make sure to read the detailed log 'report.txt'" in printed


def test_trees_keep_other_files_and_may_be_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old/sub").mkdir(parents=True)
    (tmp_path / "old/sub/a.py").write_text("tf.log(x)\n")
    (tmp_path / "old/data").write_bytes(b"\0\1")
    assert command.main(["--intree", "old", "--outtree", "new"]) == 0
    assert (tmp_path / "new/sub/a.py").read_text() == "tf.math.log(x)\n"
    assert (tmp_path / "new/data").read_bytes() == b"\0\1"
    assert "Input tree: 'old'" in (tmp_path / "report.txt").read_text()
    words = ["--intree", "old", "--outtree", "few", "--copyotherfiles", "false"]
    assert command.main(words) == 0
    assert not (tmp_path / "few/data").exists()
    assert command.main(["--intree", "old", "--inplace"]) == 0
    assert (tmp_path / "old/sub/a.py").read_text() == "tf.math.log(x)\n"


def test_a_program_that_cannot_be_parsed_is_left_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.py").write_text('print "x"\n')
    assert command.main(["--infile", "a.py", "--outfile", "b.py"]) == 1
    assert not (tmp_path / "b.py").exists()
    assert "ERROR: Failed to parse." in (tmp_path / "report.txt").read_text()
    assert "a.py: cannot be parsed" in capsys.readouterr().err
    (tmp_path / "n.ipynb").write_text("[1]")
    assert command.main(["--infile", "n.ipynb", "--outfile", "b.ipynb"]) == 1


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--infile", "a.py"], "--outfile=<output file> argument is required"),
        (["--intree", "a"], "--outtree=<output directory> argument is required"),
        ([], "expected one of --infile and --intree"),
        (
            ["--infile", "a.py", "--inplace", "--outtree", "b"],
            "--outtree goes with --intree",
        ),
        (["a.py", "--infile", "b.py", "-o", "c"], "one program is named twice"),
        (["a.py", "-o", "./a.py"], "say --inplace"),
    ],
)
def test_wrong_calls_are_said(words, text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command.main(words) == 2
    assert text in capsys.readouterr().err


def test_a_file_that_is_not_there_is_an_error(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert command.main(["--infile", "a.py", "--outfile", "b.py"]) == 1
    assert "a.py" in capsys.readouterr().err


def test_models_go_to_the_other_upgrade():
    assert command.is_for_programs(["a.py", "-o", "b"])
    assert command.is_for_programs(["--intree", "a"])
    assert not command.is_for_programs(["model", "-o", "b"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # What is moved or wrapped is rewritten itself.
        ("tf.nn.dropout(x, tf.log(y))", "tf.nn.dropout(x, rate=1 - (tf.math.log(y)))"),
        (
            "tf.cond(p, f, strict=tf.log(a), false_fn=g)",
            "tf.cond(p, f, false_fn=g)",
        ),
        ("tf.argmax(x, (0), \\\n  ('n'))", "tf.argmax(x, (0), \\\n  name=('n'))"),
        ("(tf.argmax)(x, 0, 'n')", "(tf.argmax)(x, 0, name='n')"),
        ("tf.reduce_sum(x, 1, *a)", "tf.reduce_sum(x, 1, *a)"),
        ("é = 'é'; tf.log(é)", "é = 'é'; tf.math.log(é)"),
        ("tf.log(x)\r\ny = 1\r\n", "tf.math.log(x)\r\ny = 1\r\n"),
        ("", ""),
    ],
)
def test_places_in_the_text(old, new):
    assert rewrite(old).text == new
