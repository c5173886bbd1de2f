"""tf.data.experimental.service: its dispatcher and its workers."""

import atexit

from headrace._load import _headrace
from headrace.context import errors
from headrace.framework.support import signatures

_running = []  # cores: a server that nobody stops runs until the process ends


def _stop_all():
    while _running:
        _running.pop().stop()


atexit.register(_stop_all)


class DispatcherConfig(
    signatures.tuple_of(
        "DispatcherConfig",
        "port=0, protocol=None, work_dir=None, fault_tolerant_mode=False, "
        "worker_addresses=None, job_gc_check_interval_ms=None, job_gc_timeout_ms=None, "
        "worker_timeout_ms=None, worker_max_concurrent_snapshots=0",
    )
):
    """What a DispatchServer does.

    Args:
      port: to listen at; 0: one that is free.
      protocol: "grpc".
      work_dir: a folder for the journal, also on other file systems.
      fault_tolerant_mode: whether what the dispatcher knows is written there, so that a
        new one takes it up.
      worker_addresses: "host:port", or "host" alone, of the workers that static sharding
        divides among, in order.
      job_gc_check_interval_ms: how often jobs that nobody reads are looked for; ten
        minutes.
      job_gc_timeout_ms: how long such a job is kept; five minutes.
      worker_timeout_ms: after which silence a worker is taken for dead; ten seconds.
      worker_max_concurrent_snapshots: kept, for workers that save; ours do not.
    """

    @staticmethod
    def _check(given):
        given["protocol"] = given["protocol"] or "grpc"
        for name in ("job_gc_check_interval_ms", "job_gc_timeout_ms"):
            given[name] = given[name] or 0


class WorkerConfig(
    signatures.tuple_of(
        "WorkerConfig",
        "dispatcher_address, worker_address=None, port=0, protocol=None, "
        "heartbeat_interval_ms=None, dispatcher_timeout_ms=None, "
        "data_transfer_protocol=None, data_transfer_address=None",
    )
):
    """What a WorkerServer does.

    Args:
      dispatcher_address: "host:port".
      worker_address: by which clients reach it, "localhost:%port%" by default, where
        "%port%" is the port that it listens at.
      port: to listen at; 0: one that is free.
      protocol: "grpc".
      heartbeat_interval_ms: how long a question to the dispatcher waits for news; two
        seconds, five at most.
      dispatcher_timeout_ms: how long it waits, at its start, for the dispatcher; ten
        minutes.
      data_transfer_protocol: "grpc".
      data_transfer_address: kept; elements come from the worker's own address.
    """

    @staticmethod
    def _check(given):
        if given["dispatcher_address"] is None:
            raise ValueError(
                "Must specify a `dispatcher_address` in the `config` passed to "
                "`WorkerServer`."
            )
        defaults = {
            "worker_address": "localhost:%port%",
            "protocol": "grpc",
            "heartbeat_interval_ms": 0,
            "dispatcher_timeout_ms": 0,
            "data_transfer_address": "localhost:%dts_port%",
        }
        given.update({k: v for k, v in defaults.items() if given[k] is None})


class _DataServer:
    """What both servers share: `_core` is the native one."""

    def _run(self, what):
        """RuntimeError, as upstream has it, for whatever goes wrong with a server."""
        try:
            return what()
        except errors.OpError as e:
            raise RuntimeError(e.message) from None

    def _begin(self, make, start):
        self._stopped = False
        self._core = self._run(make)
        _running.append(self._core)
        if start:
            self.start()

    def start(self):
        """Answers from now on; does nothing where it does. RuntimeError once stopped."""
        if self._stopped:
            raise RuntimeError("Server cannot be started after it has been stopped.")
        self._run(self._core.start)

    def join(self):
        """Blocks until the server is stopped; signals, such as Ctrl-C, end it."""
        self._core.join()

    def stop(self):
        """Ends what is under way; the port is free then."""
        self._stop()

    def _stop(self):
        self._stopped = True
        self._core.stop()
        if self._core in _running:
            _running.remove(self._core)

    def __del__(self):
        if hasattr(self, "_core"):
            self._stop()

    @property
    def _address(self):
        return f"localhost:{self._core.port}"


class DispatchServer(_DataServer):
    """The dispatcher of a data service, which listens on this machine alone.

    It ends with this object, or with `stop()`.

    Args:
      config: a DispatcherConfig.
      start: whether it answers at once, or from start() on.

    Raises:
      ValueError: for fault_tolerant_mode without a work_dir.
      RuntimeError: where it cannot listen at its port, its journal cannot be read, or the
        library of gRPC is not there.
    """

    def __init__(self, config=None, start=True):
        config = config or DispatcherConfig()
        if config.fault_tolerant_mode and not config.work_dir:
            raise ValueError(
                "Cannot enable fault tolerant mode without configuring a work dir. Make "
                "sure to set `work_dir` in the `config` object passed to `DispatchServer`."
            )
        self._config = config
        self._begin(
            lambda: _headrace.dispatch_server(
                config.protocol,
                config.port,
                config.work_dir or "",
                bool(config.fault_tolerant_mode),
                list(config.worker_addresses or ()),
                config.job_gc_check_interval_ms,
                config.job_gc_timeout_ms,
                config.worker_timeout_ms or 0,
            ),
            start,
        )

    @property
    def target(self):
        """What `distribute` takes to reach this dispatcher: "grpc://localhost:port"."""
        return f"{self._config.protocol}://{self._address}"

    def _num_workers(self):
        return self._core.num_workers


class WorkerServer(_DataServer):
    """A worker of a data service, which listens on this machine alone.

    It ends with this object, or with `stop()`.

    Args:
      config: a WorkerConfig.
      start: whether it begins at once, or with start().

    Raises:
      RuntimeError: where it cannot listen at its port, the dispatcher does not answer, or
        the library of gRPC is not there.
    """

    def __init__(self, config, start=True):
        if config is None or config.dispatcher_address is None:
            raise ValueError(
                "Must specify a `dispatcher_address` in the `config` passed to "
                "`WorkerServer`."
            )
        if config.data_transfer_protocol not in (None, "grpc"):
            raise RuntimeError(
                "No data transfer server factory has been registered for protocol "
                f"{config.data_transfer_protocol}. The available types are: [ grpc ]"
            )
        self._config = config
        self._begin(
            lambda: _headrace.worker_server(
                config.protocol,
                config.port,
                config.dispatcher_address,
                config.worker_address,
                config.heartbeat_interval_ms,
                config.dispatcher_timeout_ms,
            ),
            start,
        )

    def _num_tasks(self):
        return self._core.num_tasks
