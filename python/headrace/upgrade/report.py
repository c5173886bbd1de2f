"""The report of an upgrade, in the words of tf_upgrade_v2."""

_RULE = "-" * 80
_DOUBLE = "=" * 80
ISSUES = ("WARNING", "ERROR")


def _issues(notes):
    return [n for n in notes if n[2] in ISSUES]


class Report:
    """Of files that were rewritten, in their order."""

    def __init__(self):
        self._files = []  # (path, output path, Rewritten)
        self._tree = None

    def add(self, path, output, rewritten):
        self._files.append((path, output, rewritten))

    def add_tree(self, path):
        """Says that all files are of this folder."""
        self._tree = path

    def has_failures(self):
        return any(r.failure for _, _, r in self._files)

    def summary(self):
        """What is to be looked at."""
        issues = sum(len(_issues(r.notes)) for _, _, r in self._files)
        out = [
            "TensorFlow 2.0 Upgrade Script\n",
            "-----------------------------\n",
            f"Converted {len(self._files)} files\n",
            f"Detected {issues} issues that require attention\n",
            _RULE + "\n",
        ]
        for path, _, rewritten in self._files:
            if not _issues(rewritten.notes):
                continue
            out.append(f"{_RULE}\nFile: {path}\n{_RULE}\n")
            for line, column, level, text in _issues(rewritten.notes):
                out.append(f"{path}:{line}:{column}: {level}: {text}\n")
        return "".join(out)

    def log(self):
        """All that was done."""
        out = []
        if self._tree is not None:
            out.append(f"{_DOUBLE}\nInput tree: {self._tree!r}\n{_DOUBLE}\n")
        for path, output, rewritten in self._files:
            out.append(
                f"{_RULE}\nProcessing file {path!r}\n outputting to {output!r}\n"
                f"{_RULE}\n\n"
            )
            if rewritten.failure:
                out.append("ERROR: Failed to parse.\n" + rewritten.failure)
            for line, column, level, text in rewritten.notes:
                out.append(f"{line}:{column}: {level}: {text}\n")
            # An empty log has an empty line.
            if not rewritten.notes:
                out.append("\n")
            out.append(f"{_RULE}\n\n")
        return "".join(out)

    def text(self):
        """What the report's file has."""
        return f"{self.summary()}{_DOUBLE}\nDetailed log follows:\n\n{_DOUBLE}\n{self.log()}"

    def lines_of(self, rewritten):
        """The notes of a file as they are printed while it is worked on."""
        return "".join(
            f"{level} line {line}:{column}: {text}\n"
            for line, column, level, text in rewritten.notes
        )
