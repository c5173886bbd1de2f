"""The progress line of fit, evaluate and predict."""

import sys
import time

import numpy as np

from headrace.framework.settings import logging
from headrace.keras import settings
from headrace.keras.callback.base import Callback
from headrace.keras.classes import takes


@takes(
    "target, width=30, verbose=1, interval=0.05, stateful_metrics=None, "
    "unit_name='step'"
)
class Progbar:
    """A line that shows how far a loop is, with averages of values."""

    def _begin(self):
        self.stateful_metrics = set(self.stateful_metrics or ())
        self._values = {}  # name -> [sum, count], or the latest value
        self._seen = 0
        self._line = 0  # width of what is shown
        self._start = time.time()
        self._last = 0
        self._first_done = None

    def update(self, current, values=None, finalize=None):
        """Shows that `current` steps are done, with values: a list of (name, number).

        Numbers of names that are not stateful are averaged over steps. `finalize` ends
        the line; it is meant where `current` reaches the target.
        """
        if finalize is None:
            finalize = self.target is not None and current >= self.target
        self._note(current, values or [])
        self._seen = current
        now = time.time()
        if self.verbose == 1:
            if now - self._last < self.interval and not finalize:
                return
            line = self._bar(current) + self._timing(current, now, finalize)
            self._show(line + self._shown_values(" - "), finalize)
            self._last = now
        elif self.verbose == 2 and finalize:
            self._show_summary(current, now)

    def add(self, n, values=None):
        """Shows that `n` further steps are done, with values as update() takes them."""
        self.update(self._seen + n, values)

    def _note(self, current, values):
        for name, value in values:
            if name in self.stateful_metrics:
                self._values[name] = value
                continue
            step = max(current - self._seen, 1)
            total = self._values.setdefault(name, [0.0, 0])
            total[0] += _number(value) * step
            total[1] += step

    def _bar(self, current):
        if self.target is None:
            return f"{current:7d}/Unknown"
        digits = int(np.log10(self.target)) + 1
        filled = int(self.width * current / self.target)
        bar = ""
        if filled > 0:
            bar = "=" * (filled - 1) + (">" if current < self.target else "=")
        bar += "." * (self.width - filled)
        return f"{current:{digits}d}/{self.target} [{bar}]"

    def _per_step(self, current, now):
        """Seconds a step, without the first, which traces."""
        if not current:
            return 0
        if self._first_done is not None and current > 1:
            return (now - self._first_done) / (current - 1)
        return (now - self._start) / current

    def _timing(self, current, now, finalize):
        per_step = self._per_step(current, now)
        if current and self._first_done is None:
            self._first_done = now
        if self.target is None or finalize:
            return f" - {now - self._start:.0f}s" + self._rate(per_step)
        eta = per_step * (self.target - current)
        return f" - ETA: {_clock(eta)}"

    def _rate(self, seconds):
        if seconds >= 1 or seconds == 0:
            return f" {seconds:.0f}s/{self.unit_name}"
        if seconds >= 1e-3:
            return f" {seconds * 1e3:.0f}ms/{self.unit_name}"
        return f" {seconds * 1e6:.0f}us/{self.unit_name}"

    def _shown_values(self, gap):
        text = ""
        for name, value in self._values.items():
            if isinstance(value, list):
                value = float(np.mean(value[0] / max(1, value[1])))
            else:
                value = _number(value)
            if isinstance(value, float):
                # As upstream has it: summaries write numbers below 0 as small ones.
                size = value if self.verbose == 2 else abs(value)
                value = f"{value:.4f}" if size > 1e-3 else f"{value:.4e}"
            text += f"{gap}{name}: {value}"
        return text

    def _show(self, line, finalize):
        back = "\b" * self._line + "\r"
        short = max(self._line - len(line), 0) if self._line else 0
        show(back + line + " " * short + ("\n" if finalize else ""))
        self._line = len(line)

    def _show_summary(self, current, now):
        whole = self.target if self.target is not None else current
        digits = int(np.log10(max(whole, 1))) + 1
        line = f"{current:{digits}d}/{whole}"
        line += f" - {now - self._start:.0f}s" + self._shown_values(" - ")
        seconds = now - self._start
        whole = self._rate(seconds).removesuffix(self.unit_name)
        line += f" -{whole}epoch"
        line += " -" + self._rate(self._per_step(current, now))
        show(line + "\n")


def show(text):
    """Progress on the console, or as a message of the log."""
    if settings.is_interactive_logging_enabled():
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        logging.info("%s", text.strip("\b\r\n"))


def _number(value):
    if hasattr(value, "numpy"):
        value = value.numpy()
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    return float(value) if isinstance(value, (float, np.floating)) else value


def _clock(seconds):
    if seconds > 3600:
        hours, rest = divmod(int(seconds), 3600)
        return f"{hours}:{rest // 60:02d}:{rest % 60:02d}"
    if seconds > 60:
        return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
    return f"{seconds:.0f}s"


class ProgbarLogger(Callback):
    """Shows the progress of fit, evaluate and predict.

    It counts "steps", or "samples", whose number models in graphs of TensorFlow 1 tell:
    of arrays in batches.
    """

    _takes_tensors = True

    def __init__(self, count_mode="steps", stateful_metrics=None):
        super().__init__()
        if count_mode not in ("samples", "steps"):
            raise ValueError(
                f'Unknown `count_mode`: {count_mode}. Expected values are ["samples", '
                '"steps"]'
            )
        self._by_samples = count_mode == "samples"
        self._stateful = stateful_metrics
        self._bar = None
        self._in_fit = False
        self._seen = 0

    def set_params(self, params):
        """Takes the verbosity and the numbers of epochs and steps."""
        super().set_params(params)
        self.verbose, self.epochs = params["verbose"], params["epochs"]
        self.target = params.get("samples" if self._by_samples else "steps")

    def _begin(self):
        self._seen = 0
        self._bar = None

    def _open(self):
        if self._bar is None:
            stateful = self._stateful
            if stateful is None:
                stateful = [m.name for m in self.model.metrics]
            self._bar = Progbar(
                self.target,
                verbose=self.verbose,
                stateful_metrics=stateful,
                unit_name="sample" if self._by_samples else "step",
            )

    def _update(self, batch, logs):
        self._open()
        described = getattr(logs, "described", {})
        self._seen += described.get("size", 1) if self._by_samples else 1
        if hasattr(logs, "fetch"):  # of a worker: nobody waits for it here
            logs = logs._so_far()
        if self.verbose == 1:
            shown = {} if self._by_samples else described
            values = [*shown.items(), *(logs or {}).items()]
            self._bar.update(self._seen, values, finalize=False)

    def _finish(self, logs):
        self._open()
        if self.target is None:
            self.target = self._bar.target = self._seen
        self._bar.update(self.target, list((logs or {}).items()), finalize=True)

    def on_train_begin(self, logs=None):
        """Notes that validation's progress is not to be shown."""
        self._in_fit = True

    def on_train_end(self, logs=None):
        """Notes that fit is over."""
        self._in_fit = False

    def on_epoch_begin(self, epoch, logs=None):
        """Begins a line, under "Epoch n/m" where there are several."""
        self._begin()
        if self.verbose and self.epochs > 1:
            show(f"Epoch {epoch + 1}/{self.epochs}\n")

    def on_train_batch_end(self, batch, logs=None):
        """Moves the line on."""
        self._update(batch, logs)

    def on_epoch_end(self, epoch, logs=None):
        """Ends the line, with what validation found."""
        self._finish(logs)

    def on_test_begin(self, logs=None):
        """Begins a line, unless fit validates."""
        if not self._in_fit:
            self._begin()

    def on_test_batch_end(self, batch, logs=None):
        """Moves the line on, unless fit validates."""
        if not self._in_fit:
            self._update(batch, logs)

    def on_test_end(self, logs=None):
        """Ends the line, unless fit validates."""
        if not self._in_fit:
            self._finish(logs)

    def on_predict_begin(self, logs=None):
        """Begins a line."""
        self._begin()

    def on_predict_batch_end(self, batch, logs=None):
        """Moves the line on."""
        self._update(batch, None)

    def on_predict_end(self, logs=None):
        """Ends the line."""
        self._finish(None)
