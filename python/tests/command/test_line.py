"""What holds for every command line: help, completion, errors, pipes, damage."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from command_line import golden, program

import headrace as tf

COMMANDS = (
    "show run ops diff freeze optimize upgrade svg bench serve help completion"
).split()


def test_help_lists_all_commands(line):
    out = line("--help")
    assert re.findall(r"^  (\w+) {2,}", out, re.M) == COMMANDS
    assert out == line("help") == line("-h")
    assert max(map(len, out.splitlines())) < 80


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_each(line, name):
    out = line("help", name)
    assert out.startswith(f"Usage: headrace {name}")
    assert out == line(name, "--help")
    assert max(map(len, out.splitlines())) < 80


def test_version(line):
    assert re.fullmatch(r"headrace \d+\.\d+\.\d+\n", line("--version"))


@pytest.mark.parametrize(
    "args, message",
    [
        ([], "a command is missing"),
        (["nothing"], "there is no command nothing"),
        (["show"], "PATH is missing"),
        (["show", "a", "b"], "unexpected argument b"),
        (["show", "a", "--none"], "unknown option --none"),
        (["show", "a", "--json=1"], "--json takes no value"),
        (["show", "a", "--limit"], "--limit needs a COUNT"),
        (["show", "a", "--json", "--json"], "--json is given twice"),
        (["diff", "a"], "B is missing"),
        (["help", "nothing"], "there is no command nothing"),
        (["completion", "fish"], "no completion for fish"),
        (["freeze", "a"], "--output is missing"),
        (["run", "a", "-n", 2], "--workers stands before the program"),
        (["run", "a", "--ps=1"], "--ps needs --workers"),
        (["run", "--logs", "b", "a"], "--logs needs --workers"),
        (["run", "-i", "x=1", "-n", 2, "a"], "unknown option -i"),
        (["run", "a", "--overwrite"], "--overwrite needs --outdir"),
        (["run", "a", "--json", "-o", "b"], "--json does not go with --outdir"),
        (["bench", "a", "--safe", "--policy=b"], "--safe does not go with --policy"),
        (["show", "a", "--all", "-n", 1], "--all does not go with --limit"),
    ],
)
def test_wrong_usage_ends_with_2(line, args, message):
    assert message in line.fails(*args, code=2)


MODEL = golden("saved_models/plain")
CHECKPOINT = golden("checkpoints/many_keys/ckpt-1")
RECORDS = golden("records/plain.tfrecord")


@pytest.mark.parametrize(
    "args, message",
    [
        (["show", MODEL, "--tensor", "a"], "--tensor belongs to a checkpoint, and"),
        (["show", MODEL, "--limit", 1], "--limit belongs to a TFRecord file, and"),
        (["show", CHECKPOINT, "--tag_set=a"], "--tag_set belongs to a SavedModel, and"),
        (
            ["show", RECORDS, "--signature_def=a"],
            "records/plain.tfrecord is a TFRecord",
        ),
        (["run", MODEL, "--outputs", "a"], "belongs to a GraphDef or a MetaGraphDef"),
        (["bench", MODEL, "--outputs", "a"], "plain is a SavedModel"),
        (["freeze", MODEL, "-c", "a", "-o", "b"], "--checkpoint belongs to a GraphDef"),
        (["optimize", MODEL, "--outputs=a", "-o", "b"], "--outputs belongs to"),
        (["svg", "GRAPH", "--tag_set", "serve"], "--tag_set belongs to a SavedModel"),
        (
            ["diff", "GRAPH", "GRAPH", "-t", 1],
            "--tolerance belongs to a SavedModel or a",
        ),
    ],
)
def test_options_that_the_path_has_no_use_for(line, tmp_path, args, message):
    path = tmp_path / "g.pb"
    graph = tf.Graph()
    with graph.as_default():
        tf.constant(1.0, name="c")
    path.write_bytes(graph.as_graph_def().SerializeToString())
    args = [path if a == "GRAPH" else a for a in args]
    assert message in line.fails(*args, code=2)


def test_completion(line, tmp_path):
    for shell in ("bash", "zsh"):
        script = line("completion", shell)
        for name in COMMANDS:
            assert name in script
        path = tmp_path / shell
        path.write_text(script)
        if shutil.which(shell):
            subprocess.run([shell, "-n", str(path)], check=True)
    asked = (
        "source {}; COMP_WORDS=(headrace show --js); COMP_CWORD=2; _headrace; "
        'echo "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run(
        ["bash", "-c", asked.format(tmp_path / "bash")], capture_output=True, check=True
    )
    assert done.stdout == b"--json\n"


@pytest.mark.parametrize("name", ["show", "run", "ops", "svg", "bench"])
def test_paths_that_are_nothing(line, tmp_path, name):
    assert "there is no such file" in line.fails(name, tmp_path / "none")
    (tmp_path / "empty").mkdir()
    assert "expected a SavedModel" in line.fails(name, tmp_path / "empty")
    (tmp_path / "text").write_text("hello")
    assert str(tmp_path / "text") in line.fails(name, tmp_path / "text")
    line.fails(name, "ftp://elsewhere/x")
    line.fails(name, "")


def test_as_a_program(tmp_path):
    done = program("--version")
    assert done.returncode == 0 and done.stdout.startswith(b"headrace ")
    done = program("show", tmp_path / "none\x1b[2J")
    assert done.returncode == 1 and done.stdout == b""
    assert b"none\\x1b[2J" in done.stderr
    assert program("show").returncode == 2


WITHOUT_NUMPY = """
import sys
from headrace import _command
code = _command.run(["show", sys.argv[1]])
print("numpy" in sys.modules, "headrace.framework" in sys.modules)
sys.exit(code)
"""


def test_showing_a_model_imports_neither_numpy_nor_the_package():
    line = [sys.executable, "-c", WITHOUT_NUMPY, MODEL]
    done = subprocess.run(line, capture_output=True, text=True, check=True)
    assert done.stdout.endswith("False False\n")


def test_a_closed_pipe_ends_quietly(tmp_path):
    values = {f"v{i}": tf.Variable(float(i)) for i in range(3000)}
    prefix = tf.train.Checkpoint(**values).write(str(tmp_path / "c"))
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        ["bash", "-c", f"trap '' PIPE; exec {shown(prefix)}"],
        stdout=write,
        stderr=subprocess.PIPE,
        timeout=120,
    )
    os.close(write)
    assert done.stderr == b""


def shown(prefix):
    return f"{sys.executable} -m headrace._command show {prefix} --all"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_full_disk_is_an_error():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            ["bash", "-c", f"exec {shown(golden('checkpoints/many_keys/ckpt-1'))}"],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=120,
        )
    assert done.returncode == 1 and b"No space left" in done.stderr


def truncations(size):
    return sorted({*range(0, min(size, 40), 3), *range(40, size, size // 30 + 1)})


@pytest.mark.parametrize("command", ["show", "ops"])
def test_truncated_models(line, tmp_path, command):
    with open(golden("saved_models/plain/saved_model.pb"), "rb") as f:
        whole = f.read()
    path = tmp_path / "saved_model.pb"
    for cut in truncations(len(whole)):
        path.write_bytes(whole[:cut])
        # A message that is cut between two fields is one.
        try:
            assert "saved_model.pb" in line.fails(command, tmp_path)
        except AssertionError:
            line(command, tmp_path)


def test_truncated_checkpoints(line, tmp_path):
    source = golden("checkpoints/all_dtypes/ckpt")
    for suffix in (".index", ".data-00000-of-00001"):
        for name in (".index", ".data-00000-of-00001"):
            shutil.copy(source + name, tmp_path / ("ckpt" + name))
        path = tmp_path / ("ckpt" + suffix)
        whole = path.read_bytes()
        for cut in truncations(len(whole)):
            path.write_bytes(whole[:cut])
            line("show", tmp_path / "ckpt", "--all", code=1)
            assert line.err.startswith("headrace show: ")


def test_truncated_records(line, tmp_path):
    for name in ("plain.tfrecord", "gzip.tfrecord", "events_v2.tfevents"):
        with open(golden("records", name), "rb") as f:
            whole = f.read()
        path = tmp_path / name
        for cut in truncations(len(whole))[5:]:
            path.write_bytes(whole[:cut])
            try:
                line("show", path)
            except AssertionError:
                assert line.err.startswith("headrace show: ")


def test_giant_shapes(line, tmp_path):
    graph = tf.compat.v1.GraphDef()
    c = graph.node.add(name="c", op="Const")
    c.attr["dtype"].type = 1
    c.attr["value"].tensor.dtype = 1
    for size in (2**40, 2**40, 3):
        c.attr["value"].tensor.tensor_shape.dim.add(size=size)
    graph.node.add(name="y", op="Identity", input=["c"]).attr["T"].type = 1
    path = tmp_path / "g.pb"
    path.write_bytes(graph.SerializeToString())
    assert "float32[1099511627776,1099511627776,3]" in line("show", path, "--all")
    for args in (["run", path], ["optimize", path, "-o", tmp_path / "o.pb"]):
        assert "headrace" in line.fails(*args)
