"""tf.profiler.experimental.server: other processes ask this one for profiles."""

import atexit
import concurrent.futures
import numbers
import os
import tempfile
import threading
import time

from headrace.context import errors
from headrace.framework.support import protos
from headrace.io import gfile
from headrace.serving.grpc_wire import import_grpc
from headrace.summary import profiler

SERVICE = "/tensorflow.ProfilerService/"
_THREADS = 4  # a profile occupies one, what asks meanwhile or ends it another
_LONGEST_MS = 24 * 3600 * 1000
_running = []  # servers live until the process ends


@atexit.register
def _stop_all():
    while _running:
        _running.pop().stop(0)


def start(port):
    """Answers, on all addresses of this machine, who asks for profiles of the process.

    It does so until the process ends: tf.profiler.experimental.client, TensorBoard's
    "capture profile" and TensorFlow's own client may ask. Who reaches the port can have
    profiles written wherever this process may write, so it is for trusted networks alone.
    Needs the grpcio package.

    Raises TypeError for what is no integer, ValueError for what is no port, and
    UnavailableError where the process cannot listen there.
    """
    if isinstance(port, bool) or not isinstance(port, numbers.Integral):
        raise TypeError(f"`port` must be an integer, got {port!r}")
    if not 0 < port < 65536:
        raise ValueError(f"`port` must lie between 1 and 65535, got {port}")
    grpc = import_grpc("")
    server = grpc.server(
        concurrent.futures.ThreadPoolExecutor(_THREADS, "profile_server"),
        handlers=[_handlers(grpc)],
        options=[("grpc.so_reuseport", 0)],
    )
    try:
        bound = server.add_insecure_port(f"0.0.0.0:{port}")
    except RuntimeError:  # newer versions of gRPC raise, older ones give 0
        bound = 0
    if bound == 0:
        raise errors.UnavailableError._of(f"cannot listen at port {port}")
    server.start()
    _running.append(server)


def _handlers(grpc):
    session = _Session()
    codes = {code.value[0]: code for code in grpc.StatusCode}

    def method(ask, name):
        def answer(request, context):
            try:
                return ask(request, context)
            except errors.OpError as e:
                context.abort(codes[e.error_code], e.message)
            except NotImplementedError as e:
                context.abort(grpc.StatusCode.UNIMPLEMENTED, str(e))
            except OSError as e:
                context.abort(grpc.StatusCode.INTERNAL, str(e))

        return grpc.unary_unary_rpc_method_handler(
            answer,
            getattr(protos, name + "Request").FromString,
            getattr(protos, name + "Response").SerializeToString,
        )

    methods = {
        "Profile": method(session.profile, "Profile"),
        "Terminate": method(session.terminate, "Terminate"),
        "Monitor": method(_monitor, "Monitor"),
    }
    return grpc.method_handlers_generic_handler(SERVICE.strip("/"), methods)


def _monitor(request, context):
    raise errors.UnimplementedError._of(
        "unimplemented."  # TensorFlow's words where there are only processors
    )


class _Session:
    """The profile that somebody far away has asked for, one at a time."""

    def __init__(self):
        self._ends = {}  # session's id -> what wakes its thread

    def profile(self, request, context):
        """Answers Profile: profiles for a while and writes a file."""
        path = _file_of(request)
        wake = self._ends[request.session_id] = threading.Event()
        context.add_callback(wake.set)  # the client has gone
        try:
            data = _recorded(request, wake)
        finally:
            self._ends.pop(request.session_id, None)
        gfile.makedirs(os.path.dirname(path))
        with gfile.GFile(path, "wb") as file:
            file.write(data)
        space = protos.message("tensorflow.profiler.XSpace").FromString(data)
        some = any(line.events for plane in space.planes for line in plane.lines)
        return protos.ProfileResponse(empty_trace=not some)

    def terminate(self, request, context):
        """Answers Terminate: the profile of that session ends now."""
        wake = self._ends.get(request.session_id)
        if wake is not None:
            wake.set()
        return protos.TerminateResponse()


def _file_of(request):
    """Where the profile is to lie; InvalidArgumentError for requests without sense."""
    if not 0 < request.duration_ms <= _LONGEST_MS:
        raise errors.InvalidArgumentError._of(
            f"duration_ms must lie between 1 and {_LONGEST_MS}, got "
            f"{request.duration_ms}"
        )
    if not request.repository_root:
        raise errors.InvalidArgumentError._of("repository_root must be a folder")
    for name in "session_id", "host_name":
        value = getattr(request, name)
        if value in ("", ".", "..") or "/" in value or "\0" in value:
            raise errors.InvalidArgumentError._of(f"{name} {value!r} is no file's name")
    host = request.host_name.replace(":", "_")
    return os.path.join(
        request.repository_root, request.session_id, host + ".xplane.pb"
    )


def _recorded(request, wake):
    """The bytes of an XSpace of what the process does for the time that was asked."""
    options = request.opts
    delay = options.start_timestamp_ns - time.time_ns()
    delay = min(max(delay // 1_000_000, 0), _LONGEST_MS)
    level = options.host_tracer_level if request.HasField("opts") else 2
    chosen = profiler.ProfilerOptions(
        min(level, 3), options.python_tracer_level, delay_ms=delay
    )
    with tempfile.TemporaryDirectory() as folder:
        profiler.start(folder, chosen)
        try:
            wake.wait((request.duration_ms + delay) / 1000)
        finally:
            profiler.stop()
        (path,) = gfile.glob(f"{folder}/plugins/profile/*/*.xplane.pb")
        with open(path, "rb") as file:
            return file.read()
