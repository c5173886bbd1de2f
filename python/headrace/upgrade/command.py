"""`headrace upgrade` of programs, with the options of tf_upgrade_v2."""

import argparse
import functools
import os
import shutil
import sys

from headrace.upgrade import notebooks
from headrace.upgrade.report import Report
from headrace.upgrade.rewrite import Rewritten, rewrite

_PROGRAMS = (".py", ".ipynb")
_DOUBLE = "=" * 80


class UpgradeError(Exception):
    """What the user asked for cannot be done."""


def _parser():
    parser = argparse.ArgumentParser(
        prog="headrace upgrade",
        description="Converts programs of TensorFlow 1.x to 2.0.",
    )
    parser.add_argument("program", nargs="?", help="the same as --infile")
    parser.add_argument("--infile", help="one program (.py or .ipynb)")
    parser.add_argument("--outfile", "-o", "--output", help="where it is written to")
    parser.add_argument("--intree", help="a folder of programs")
    parser.add_argument("--outtree", help="where they are written to")
    parser.add_argument(
        "--copyotherfiles",
        type=_is_true,
        default=True,
        help="of --intree: true or false",
    )
    parser.add_argument("--inplace", action="store_true", help="replace the programs")
    parser.add_argument(
        "--no_import_rename",
        action="store_true",
        help="as upstream's: imports are not renamed in any case",
    )
    parser.add_argument(
        "--no_upgrade_compat_v1_import",
        action="store_true",
        help="leave programs alone that import tensorflow.compat.v1 as tf",
    )
    parser.add_argument("--reportfile", default="report.txt")
    parser.add_argument("--mode", choices=("DEFAULT", "SAFETY"), default="DEFAULT")
    parser.add_argument(
        "--print_all", action="store_true", help="print the log, not only what is to do"
    )
    return parser


def _is_true(text):
    if text.lower() not in ("true", "false", "1", "0"):
        raise argparse.ArgumentTypeError(f"expected true or false, got {text!r}")
    return text.lower() in ("true", "1")


def is_for_programs(arguments):
    """Whether the arguments of `headrace upgrade` name programs, not models."""
    for argument in arguments:
        if argument.startswith(("--infile", "--intree")) or (
            not argument.startswith("-") and argument.endswith(_PROGRAMS)
        ):
            return True
    return False


class _Upgrade:
    def __init__(self, options):
        self._options = options
        self.report = Report()
        self._rewrite = functools.partial(
            rewrite,
            mode=options.mode,
            upgrade_compat_v1_import=not options.no_upgrade_compat_v1_import,
        )

    def one(self, path, output):
        """Rewrites a program; one that cannot be parsed is not written."""
        try:
            with open(path, encoding="utf-8", newline="") as f:
                text = f.read()
            if path.endswith(".ipynb"):
                done = notebooks.rewrite(text, self._rewrite)
            else:
                done = self._rewrite(text)
        except (UnicodeDecodeError, ValueError) as e:
            done = Rewritten("", failure=f"{type(e).__name__}: {e}\n")
        self.report.add(path, output, done)
        sys.stdout.write(self.report.lines_of(done))
        if done.failure:
            print(f"headrace upgrade: {path}: cannot be parsed", file=sys.stderr)
            return
        temporary = f"{output}.tmp{os.getpid()}"
        try:
            with open(temporary, "w", encoding="utf-8", newline="") as f:
                f.write(done.text)
            if os.path.exists(output):
                shutil.copymode(output, temporary)
            os.replace(temporary, output)
        finally:
            if os.path.exists(temporary):
                os.remove(temporary)

    def tree(self, root, to):
        self.report.add_tree(root)
        inside = os.path.abspath(to).startswith(os.path.abspath(root) + os.sep)
        if inside:
            raise UpgradeError(f"{to} lies in the folder that is read, {root}")
        for folder, folders, names in os.walk(root):
            folders.sort()
            place = os.path.normpath(os.path.join(to, os.path.relpath(folder, root)))
            for name in sorted(names):
                path, output = os.path.join(folder, name), os.path.join(place, name)
                is_program = name.endswith(_PROGRAMS)
                if not is_program and (
                    not self._options.copyotherfiles
                    or os.path.abspath(to) == os.path.abspath(root)
                ):
                    continue
                os.makedirs(place, exist_ok=True)
                if is_program and not os.path.islink(path):
                    self.one(path, output)
                else:
                    shutil.copy(path, output)


def _outputs(options):
    """Fills in what --inplace says; raises UpgradeError for what does not fit."""
    if options.program is not None:
        if options.infile is not None:
            raise UpgradeError("one program is named twice, by itself and by --infile")
        options.infile = options.program
    if (options.infile is None) == (options.intree is None):
        raise UpgradeError("expected one of --infile and --intree")
    for source, target in (("infile", "outfile"), ("intree", "outtree")):
        path, output = getattr(options, source), getattr(options, target)
        if path is None:
            if output is not None:
                raise UpgradeError(f"--{target} goes with --{source}")
            continue
        if options.inplace:
            if output is not None:
                raise UpgradeError(f"--{target} and --inplace exclude each other")
            setattr(options, target, path)
        elif output is None:
            kind = "a single file" if source == "infile" else "a file tree"
            what = "output file" if source == "infile" else "output directory"
            raise UpgradeError(
                f"--{target}=<{what}> argument is required when converting {kind}."
            )
        elif os.path.abspath(path) == os.path.abspath(output):
            raise UpgradeError(f"--{target} is --{source} itself: say --inplace")


def main(arguments):
    """Runs with these command line arguments; returns 0, 1 where something failed, 2
    where it was called wrongly."""
    options = _parser().parse_args(arguments)
    try:
        _outputs(options)
    except UpgradeError as e:
        print(f"headrace upgrade: {e}", file=sys.stderr)
        return 2
    upgrade = _Upgrade(options)
    try:
        if options.infile is not None:
            upgrade.one(options.infile, options.outfile)
        else:
            if not os.path.isdir(options.intree):
                raise UpgradeError(f"{options.intree}: there is no such folder")
            upgrade.tree(options.intree, options.outtree)
        report = upgrade.report
        print(report.text() if options.print_all else report.summary())
        with open(options.reportfile, "w", encoding="utf-8") as f:
            f.write(report.text())
    except (OSError, UpgradeError) as e:
        print(f"headrace upgrade: {e}", file=sys.stderr)
        return 1
    print(f"\nMake sure to read the detailed log {options.reportfile!r}\n")
    return 1 if report.has_failures() else 0
