"""tf.profiler.experimental.client: asks other processes for profiles."""

import concurrent.futures
import os
import time

from headrace.context import errors
from headrace.framework.support import protos
from headrace.serving.client import Deadline
from headrace.serving.grpc_wire import GrpcWire, import_grpc
from headrace.summary import profiler
from headrace.summary.profile_server import SERVICE

_GRACE_SECONDS = 60  # for the answer, behind the time of the profile
# What files a server may make of a profile: XSpaces, and those that TensorBoard's plugin
# derives; servers take the list to be all that is wanted.
_TOOLS = [
    "trace_viewer",
    "op_profile",
    "input_pipeline",
    "kernel_stats",
    "memory_viewer",
    "memory_profile",
    "overview_page",
    "pod_viewer",
    "tensorflow_stats",
    "xplane.pb",
]
_MOST_EVENTS = 1_000_000


def _hosts(text):
    """The "HOST:PORT" of "grpc://HOST:PORT,HOST:PORT"."""
    hosts = [h.strip().removeprefix("grpc://") for h in text.split(",")]
    for host in hosts:
        name, _, port = host.rpartition(":")
        if not name or not port.isdecimal() or int(port) > 65535:
            raise RuntimeError(
                f'INVALID_ARGUMENT: Could not interpret "{host}" as a host-port pair.'
            )
    return hosts


def _ask(host, method, request, seconds):
    wire = GrpcWire(host, None, ())
    try:
        response = getattr(protos, method + "Response")
        return wire.ask(SERVICE + method, request, response, Deadline(seconds))
    finally:
        wire.close()


def _in_words(error):
    """The RuntimeError that says a status as TensorFlow's does."""
    name = next(
        name
        for name, value in vars(errors).items()
        if name.isupper() and value == error.error_code
    )
    return RuntimeError(f"{name}: {error.message}")


def _positive(duration_ms):
    if duration_ms <= 0:
        raise errors.InvalidArgumentError._of("duration_ms must be greater than zero.")
    return int(duration_ms)


def trace(
    service_addr,
    logdir,
    duration_ms,
    worker_list="",
    num_tracing_attempts=3,
    options=None,
):
    """Has other processes profile themselves; their files lie together for TensorBoard.

    Args:
      service_addr: "HOST:PORT" where tf.profiler.experimental.server was started, or
        several with commas between; "grpc://" before them may be there.
      logdir: a folder that those processes write to, each its own file below
        `plugins/profile/TIME`.
      duration_ms: how long.
      worker_list: where it is given, these are asked in the place of `service_addr`.
      num_tracing_attempts: how often it is tried while nothing happens or servers are
        busy.
      options: a tf.profiler.experimental.ProfilerOptions.

    Raises:
      InvalidArgumentError: duration_ms is not above 0.
      RuntimeError: an address is none, a server cannot be reached or refuses, or nothing
        happened in any attempt; it begins with the status' name.
    """
    duration = _positive(duration_ms)
    import_grpc("")
    hosts = _hosts(worker_list or service_addr)
    options = profiler.checked_options(options)
    left = num_tracing_attempts - 1
    while True:
        print(f"Starting to trace for {duration} ms. Remaining attempt(s): {left}")
        try:
            _trace_once(hosts, os.fspath(logdir), duration, options)
            return
        except (errors.UnavailableError, errors.AlreadyExistsError) as e:
            if left > 0:
                print("No trace event is collected. Automatically retrying.\n")
                left -= 1
                continue
            print(
                f"No trace event is collected after {num_tracing_attempts} attempt(s)."
                " Perhaps, you want to try again (with more attempts?)."
            )
            raise _in_words(e) from None
        except errors.OpError as e:
            raise _in_words(e) from None


def _trace_once(hosts, logdir, duration, options):
    """Asks all hosts at once; the error of one that fails where none has events."""
    session = time.strftime("%Y_%m_%d_%H_%M_%S")
    request = protos.ProfileRequest(
        duration_ms=duration,
        max_events=_MOST_EVENTS,
        tools=_TOOLS,
        repository_root=os.path.join(logdir, "plugins", "profile"),
        session_id=session,
    )
    delay = options.delay_ms or 0
    request.opts.version = 1
    request.opts.device_type = request.opts.CPU
    request.opts.include_dataset_ops = True
    request.opts.enable_hlo_proto = True
    for name in "host_tracer_level", "device_tracer_level", "python_tracer_level":
        setattr(request.opts, name, getattr(options, name))
    request.opts.start_timestamp_ns = time.time_ns() + delay * 1_000_000
    request.opts.duration_ms = duration
    request.opts.repository_path = logdir
    seconds = (duration + delay) / 1000 + _GRACE_SECONDS

    def ask(host):
        own = protos.ProfileRequest()
        own.CopyFrom(request)
        own.host_name = host
        return _ask(host, "Profile", own, seconds)

    some, error = False, None
    with concurrent.futures.ThreadPoolExecutor(len(hosts)) as pool:
        for asked in [pool.submit(ask, host) for host in hosts]:
            try:
                some |= not asked.result().empty_trace
            except errors.OpError as e:
                error = error or e
    if not some:
        raise error or errors.UnavailableError._of(
            "No trace event was collected because there were no responses from clients "
            "or the responses did not have trace data."
        )


def monitor(service_addr, duration_ms, level=1):
    """What a server measures for a while, as text: devices such as TPUs have such
    measures; servers of processors alone answer UNIMPLEMENTED.

    Args:
      service_addr: "HOST:PORT", "grpc://" may be before it.
      duration_ms: how long.
      level: 1 or 2, which says more.

    Raises:
      RuntimeError: the server cannot be reached or refuses.
    """
    (host,) = _hosts(service_addr)[:1]
    import_grpc("")
    request = protos.MonitorRequest(
        duration_ms=int(duration_ms), monitoring_level=int(level), timestamp=True
    )
    try:
        response = _ask(host, "Monitor", request, duration_ms / 1000 + _GRACE_SECONDS)
        return response.data
    except errors.OpError as e:
        raise _in_words(e) from None
