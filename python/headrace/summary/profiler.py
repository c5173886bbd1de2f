"""tf.profiler.experimental: what a program does when, for TensorBoard."""

import collections
import numbers
import os

from headrace._load import _headrace


class ProfilerOptions(
    collections.namedtuple(
        "ProfilerOptions",
        "host_tracer_level python_tracer_level device_tracer_level delay_ms",
        defaults=(2, 0, 1, None),
    )
):
    """What a profile holds.

    `host_tracer_level`: 0 no events; 1 `Trace`s and calls of traced functions; 2, 3
    eager operations, the plans of functions and their steps, too.
    `python_tracer_level`: 0; others are NotImplementedError. `device_tracer_level`: 0
    or 1, the same here, as there is no device but the CPU. `delay_ms`: events that
    begin earlier than so many milliseconds after the start are left out.
    """

    __slots__ = ()


def _level(options, name):
    value = getattr(options, name)
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"ProfilerOptions.{name} is an integer, got {value!r}")
    return int(value)


def checked_options(options):
    """The ProfilerOptions, or those without arguments for None; TypeError for others."""
    options = ProfilerOptions() if options is None else options
    if not isinstance(options, ProfilerOptions):
        raise TypeError(
            "`options` must be a tf.profiler.experimental.ProfilerOptions, got "
            f"{options!r}"
        )
    return options


def start(logdir, options=None):
    """Begins the profile of the process.

    `logdir`: the folder under which `stop` writes `plugins/profile/TIME/HOST.xplane.pb`.
    AlreadyExistsError where one is under way, whoever started it.
    """
    options = checked_options(options)
    if _level(options, "python_tracer_level") != 0:
        raise NotImplementedError(
            "ProfilerOptions.python_tracer_level: calls of Python functions are not "
            "traced; use Python's cProfile, or tf.profiler.experimental.Trace"
        )
    if _level(options, "device_tracer_level") not in (0, 1):
        raise ValueError(
            "ProfilerOptions.device_tracer_level is 0 or 1, got "
            f"{options.device_tracer_level}"
        )
    delay = 0 if options.delay_ms is None else _level(options, "delay_ms")
    if not isinstance(logdir, (str, os.PathLike)):
        raise TypeError(f"`logdir` is a folder's path, got {logdir!r}")
    level = _level(options, "host_tracer_level")
    _headrace.start_profile(os.fspath(logdir), level, delay)


def stop(save=True):
    """Ends the profile and writes it, or forgets it where `save` is false.

    UnavailableError where none is under way. Where the file cannot be written the
    profile has ended, too.
    """
    _headrace.stop_profile(bool(save))


class Profile:
    """A `with` block that is profiled: `start` at its begin, `stop` at its end."""

    def __init__(self, logdir, options=None):
        self._logdir = logdir
        self._options = options

    def __enter__(self):
        start(self._logdir, self._options)

    def __exit__(self, *error):
        stop()


def _attribute(value):
    """A number, or a text that protos can hold."""
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    return str(value).encode("utf-8", "replace").decode()


class Trace:
    """A `with` block that is an event of the profile under way, if there is one.

        with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
            train_step()

    Keywords are the event's attributes; with `step_num` TensorBoard shows steps. Next
    to no cost where no profile is under way.
    """

    def __init__(self, name, **kwargs):
        if not isinstance(name, str):
            raise TypeError(f"Trace: the name is a str, got {name!r}")
        self._name = name
        self._attributes = kwargs
        self._begin = None

    def __enter__(self):
        if _headrace.timeline_on():
            self._name.encode()  # UnicodeEncodeError, as upstream
            self._begin = _headrace.timeline_now()
        return self

    def set_metadata(self, **kwargs):
        """Further attributes."""
        self._attributes.update(kwargs)

    def __exit__(self, *error):
        if self._begin is None:
            return
        begin, self._begin = self._begin, None
        attributes = {k: _attribute(v) for k, v in self._attributes.items()}
        _headrace.record_scope(self._name, begin, attributes)
