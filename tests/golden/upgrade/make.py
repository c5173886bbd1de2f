"""Runs TensorFlow's tf_upgrade_v2 on the programs of in/: PYTHON_WITH_TENSORFLOW make.py

Writes MODE/NAME (the new program) and MODE/NAME.report. Programs are kept as
NAME.program, so that no formatter takes them for our own; the script sees NAME.py."""

import contextlib
import glob
import io
import os
import shutil
import sys
import tempfile

from tensorflow.tools.compatibility import tf_upgrade_v2_main

here = os.path.dirname(os.path.abspath(__file__))
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    os.makedirs("in")
    for mode in ("DEFAULT", "SAFETY"):
        os.makedirs(mode)
        os.makedirs(os.path.join(here, mode), exist_ok=True)
        for kept in sorted(glob.glob(os.path.join(here, "in", "*"))):
            name = os.path.basename(kept)
            path = "in/" + name.replace(".program", ".py")
            out = path.replace("in/", mode + "/", 1)
            shutil.copy(kept, path)
            sys.argv = [
                "tf_upgrade_v2",
                *("--infile", path, "--outfile", out),
                *("--reportfile", out + ".report", "--mode", mode),
            ]
            with contextlib.redirect_stdout(io.StringIO()):
                tf_upgrade_v2_main.main()
            for ending in ("", ".report"):
                shutil.copy(out + ending, os.path.join(here, mode, name + ending))
