"""tf.keras.utils.StepsPerExecutionTuner: how many steps run between calls of callbacks."""

import contextlib
import threading
import time

_FACTOR = 1.5  # by which the number grows, and shrinks


class StepsPerExecutionTuner:
    """Changes a variable as long as training gets faster, from a thread of its own.

    Args:
      optimizer: counts the steps: its `iterations`.
      spe_variable: an integer tf.Variable, the number of steps.
      interval: seconds between two measurements.
      change_spe_interval: how many measurements come before each change.
      change_threshold: the share by which the speed has to differ from the one before.

    While the speed rises by more than that the last change is repeated; where it falls by
    more, the opposite is done; else nothing. The first change is to more steps.
    """

    def __init__(
        self,
        optimizer,
        spe_variable,
        interval=5,
        change_spe_interval=10,
        change_threshold=0.1,
    ):
        self.optimizer, self._variable = optimizer, spe_variable
        self.interval, self.change_spe_interval = interval, change_spe_interval
        self.spe_change_threshold = change_threshold
        self.steps_per_execution_stop_event = threading.Event()
        self.thread = None

    def __reduce__(self):  # the thread is not copied
        interval, count = self.interval, self.change_spe_interval
        given = self.optimizer, self._variable, interval, count
        return type(self), (*given, self.spe_change_threshold)

    @property
    def steps_per_execution(self):
        """The variable that it changes."""
        return self._variable

    @steps_per_execution.setter
    def steps_per_execution(self, value):
        self._variable.assign(value)

    def start(self):
        """Begins to measure; returns the threading.Thread that does it."""
        if self.thread is not None and self.thread.is_alive():
            return self.thread
        self.steps_per_execution_stop_event.clear()
        self._grows, self._speed, self._speeds = True, None, []
        self._begin()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()
        return self.thread

    def stop(self):
        """Ends the thread; the variable stays as it is."""
        if self.thread is not None:
            self.steps_per_execution_stop_event.set()
            self.thread.join()
            self.thread = None

    def _run(self):
        while not self.steps_per_execution_stop_event.wait(self.interval):
            self._measure(self._steps(), time.monotonic())

    def _steps(self):
        return int(self.optimizer.iterations.numpy())

    def _begin(self):
        self._last = self._steps(), time.monotonic()

    def _measure(self, steps, now):
        """Takes a measurement in; after enough of them the variable changes."""
        before, then = self._last
        self._last = steps, now
        if steps == before or now <= then:
            return  # nothing is trained
        self._speeds.append((steps - before) / (now - then))
        if len(self._speeds) >= self.change_spe_interval:
            self._change(sum(self._speeds) / len(self._speeds))
            self._speeds = []

    def _change(self, speed):
        last, self._speed = self._speed, speed
        if last is not None:
            if speed < last * (1 - self.spe_change_threshold):
                self._grows = not self._grows
            elif speed <= last * (1 + self.spe_change_threshold):
                return
        count = int(self._variable.numpy())
        if self._grows:
            count = max(count + 1, int(count * _FACTOR))
        else:
            count = max(1, int(count / _FACTOR))
        self._variable.assign(count)


@contextlib.contextmanager
def tuning(tuner):
    """Within, a tuner of steps per execution, where there is one, is at work."""
    if tuner is not None:
        tuner.start()
    try:
        yield
    finally:
        if tuner is not None:
            tuner.stop()
