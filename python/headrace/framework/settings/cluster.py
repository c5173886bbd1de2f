"""The tasks of a cluster that eager operations of this process may be placed on."""

import atexit

from headrace._load import _headrace

_KEEP_ALIVE_SECONDS = 600  # after which tasks let go of who does not say it is there
_MEETING_SECONDS = 600  # for tasks that are not up yet


class _Connection:
    core = None
    own = ("localhost", 0)  # what this process is called
    address = None  # where it listens
    devices = ()  # (full name, type) of the other tasks' devices


def connect(server_def):
    """Places operations on the tasks of a ServerDef from now on, of which this process is
    one; what lies on those of an earlier connection is lost.

    Raises:
      errors.OpError: where the tasks do not answer, or are of another version.
    """
    text = server_def.SerializeToString()
    jobs = {job.name: job.tasks for job in server_def.cluster.job}
    address = jobs[server_def.job_name][server_def.task_index]
    if address == _Connection.address:
        close()  # its port is needed
    core = _headrace.RemoteContextCore(text, _KEEP_ALIVE_SECONDS, _MEETING_SECONDS)
    close()
    _Connection.core = core
    _Connection.address = address
    _Connection.own = (server_def.job_name, server_def.task_index)
    _Connection.devices = [(name, kind) for name, kind, *_ in core.devices()]


def close():
    """Ends the connection, if there is one."""
    core, _Connection.core, _Connection.devices = _Connection.core, None, ()
    _Connection.address = None
    if core is not None:
        core.close()


atexit.register(close)


def devices():
    """(full name, type) of each device of other tasks."""
    return _Connection.devices


def own():
    """(job, task) of this process."""
    return _Connection.own


def place(spec):
    """Has operations of this thread run on the device of a DeviceSpec, which may be
    another task's. Its full name there, or None where it is this process's."""
    core = _Connection.core
    own = _Connection.own
    if core is None or spec is None or (spec.job or own[0], spec.task or 0) == own:
        _headrace.leave_place()
        return None
    return core.enter(spec.to_string())
