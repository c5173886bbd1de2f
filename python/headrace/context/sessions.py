"""The sessions that were entered on this thread."""

import threading


class _State(threading.local):
    def __init__(self):
        self.sessions = []


_state = _State()


def get_default_session():
    """The innermost session entered on this thread, or None."""
    return _state.sessions[-1] if _state.sessions else None


def of(session, graph, what, call):
    """`session`, or the default one; errors as upstream's."""
    session = session or get_default_session()
    if session is None:
        verb = "evaluate tensor" if what == "tensor" else "execute operation"
        raise ValueError(
            f"Cannot {verb} using `{call}`: No default session is registered. Use "
            f"`with sess.as_default()` or pass an explicit session to "
            f"`{call[:-1]}session=sess)`"
        )
    if session.graph is not graph:
        raise ValueError(
            f"Cannot use the default session to run {what}: the {what}'s graph is "
            "different from the session's graph."
        )
    return session


def enter(session):
    """Makes `session` the default one until it is left."""
    _state.sessions.append(session)


def leave(session):
    """The session before it is the default one again."""
    _state.sessions.remove(session)


def of_checkpoint(session):
    """`session`, or the default one, for a checkpoint of a graph's variables."""
    session = session or get_default_session()
    if session is None:
        raise ValueError(
            "Saving and restoring a graph's checkpoint takes a session: enter one, or "
            "pass session="
        )
    return session
