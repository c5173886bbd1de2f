"""The programs of TensorFlow 1.x in examples/v1 learn, and go on where they ended."""

import pathlib
import re
import subprocess
import sys

FOLDER = pathlib.Path(__file__).parents[2] / "examples" / "v1"


def told(program, folder):
    command = [sys.executable, str(FOLDER / program), "--folder", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def test_feed_dict(tmp_path):
    step, accuracy = told("feed_dict.py", tmp_path)
    assert step == "step 200"
    assert float(accuracy.removeprefix("accuracy: ")) > 0.97
    restored, step, accuracy = told("feed_dict.py", tmp_path)
    assert (restored, step) == ("restored step 200", "step 400")
    assert float(accuracy.removeprefix("accuracy: ")) > 0.97
    assert (tmp_path / "model-400.index").exists()


def test_queues(tmp_path):
    # (100 lines, 40 rounds, batches of 10.)
    for steps in (400, 800):
        step, line = told("queues.py", tmp_path)
        assert step == f"step {steps}"
        slope, offset = re.fullmatch(r"y = (\S+) x \+ (\S+)", line).groups()
        assert abs(float(slope) - 2) < 0.02
        assert abs(float(offset) - 1) < 0.02
    assert list((tmp_path / "model").glob("events.out.tfevents.*"))


def test_the_programs_change_but_their_import():
    for program in FOLDER.glob("*.py"):
        text = program.read_text(encoding="utf-8")
        assert text.count("headrace") == 1, program.name
        assert "\nimport headrace.compat.v1 as tf\n" in text
