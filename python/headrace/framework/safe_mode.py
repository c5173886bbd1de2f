"""Running what strangers made: which ops may run, and what they may use."""

import numbers
import os

from headrace._load import _headrace
from headrace.framework import cancellation


class SafeMode:
    """What a stranger's model may do, enforced by the engine whenever it runs.

        mode = tf.experimental.SafeMode(memory=2**30, time=5)
        model = tf.saved_model.load("folder", options=mode)
        with mode:
            tf.import_graph_def(graph_def)

    A model that is loaded so stays confined: its functions, called from wherever,
    their gradients and copies, datasets and threads that they start, the filling of its
    tables. Each loaded model has limits of its own. Within a `with` block the limits
    are those of the block for all calls that are made in it: eager operations,
    functions, sessions, models of TensorFlow 1 that are loaded; graphs made or imported
    there, and functions traced there, stay confined.

    Ops that touch nothing but their tensors run. Others are refused with
    `tf.errors.PermissionDeniedError`, which names node, op, function and what would
    permit them:

    * `allow`: names of ops, or of what ops touch: "files" ("reads", "writes"),
      "network", "python", "processes", "prints". The variables of a model and files of
      its `assets` that it lists may be read anyway, nothing else by way of "..", links
      or names that a program makes.
    * `deny`: names of ops that are refused.
    * `only`: if given, ops that are in neither `only` nor `allow` are refused.

    Limits, `None` for none; passing one is `tf.errors.ResourceExhaustedError`, or
    `tf.errors.DeadlineExceededError` for `time`:

    * `memory`: bytes of tensors, strings and plans that the model holds at one time,
      variables included.
    * `time`: seconds of a call from outside, loading included.
    * `nodes`: of all its graphs and functions.
    * `recursion`: calls of functions within each other.
    * `output`: bytes of one tensor.

    Raises InvalidArgumentError for words that are neither, or ops that are not there.
    """

    def __init__(
        self,
        allow=(),
        deny=(),
        only=(),
        memory=4 << 30,
        time=60.0,
        nodes=1_000_000,
        recursion=200,
        output=1 << 30,
    ):
        lists = {"allow": allow, "deny": deny, "only": only}
        limits = {
            "memory": memory,
            "time": time,
            "nodes": nodes,
            "recursion": recursion,
            "output": output,
        }
        lines = [f"{key}: {_words(key, value)}" for key, value in lists.items()]
        lines += [f"{key}: {_number(key, value)}" for key, value in limits.items()]
        self._set("\n".join(lines))

    @classmethod
    def from_text(cls, text):
        """Of a policy as text, as `text` gives it: lines "allow: prints ReadFile",
        "memory: 512 MiB", "time: 2.5", "recursion: none". What they do not say is as by
        default. InvalidArgumentError names a line that is wrong."""
        mode = cls.__new__(cls)
        mode._set(os.fsdecode(text))
        return mode

    def _set(self, text):
        self._core = _headrace.SafeModeCore(text)
        self._open = []  # entered and not left, in all contexts

    @property
    def text(self):
        """The policy as text, for `from_text` and `headrace run --safe=FILE`."""
        return self._core.text

    @property
    def memory_in_use(self):
        """Bytes that count against the limit of `with` blocks now."""
        return self._core.memory

    @property
    def peak_memory(self):
        """The most bytes that there were."""
        return self._core.peak_memory

    def __repr__(self):
        return f"<SafeMode {'; '.join(self.text.splitlines())}>"

    def __enter__(self):
        cancellation.enter(self, _headrace.EnteredSafeMode(self._core))
        return self

    def __exit__(self, *error):
        cancellation.leave(self)


def _words(key, value):
    words = [value] if isinstance(value, str) else list(value)
    for word in words:
        if not isinstance(word, str) or not word.isascii() or not word.isprintable():
            raise TypeError(f"`{key}` has names of ops, got {word!r}")
        if " " in word or "#" in word:
            raise ValueError(f"`{key}` has names of ops, got {word!r}")
    return " ".join(words)


def _number(key, value):
    if value is None:
        return "none"
    wanted = numbers.Real if key == "time" else numbers.Integral
    if isinstance(value, bool) or not isinstance(value, wanted):
        raise TypeError(f"`{key}` is a number or None, got {value!r}")
    return f"{float(value):.9f}" if key == "time" else str(int(value))
