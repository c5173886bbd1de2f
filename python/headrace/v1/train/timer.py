"""Which steps a hook acts at."""

import time


class _HookTimer:
    """Base of what says whether a hook should act now."""

    def reset(self):
        """Forgets what was triggered."""

    def should_trigger_for_step(self, step):
        """Whether to act at this step. Subclasses define it."""
        raise NotImplementedError

    def update_last_triggered_step(self, step):
        """Notes that the hook acted at a step. Subclasses define it."""
        raise NotImplementedError

    def last_triggered_step(self):
        """The step that the hook last acted at, or None. Subclasses define it."""
        raise NotImplementedError


class SecondOrStepTimer(_HookTimer):
    """Every so many seconds, or every so many steps."""

    def __init__(self, every_secs=None, every_steps=None):
        self.reset()
        self._every_secs = every_secs
        self._every_steps = every_steps
        if every_secs is None and every_steps is None:
            raise ValueError("Either every_secs or every_steps should be provided.")
        if every_secs is not None and every_steps is not None:
            raise ValueError("Can not provide both every_secs and every_steps.")

    def reset(self):
        """Forgets the step and the time of the last trigger."""
        self._last_triggered_step = None
        self._last_triggered_time = None

    def should_trigger_for_step(self, step):
        """Whether it is time at this step; never twice for one."""
        if self._last_triggered_step is None:
            return True
        if self._last_triggered_step == step:
            return False
        if self._every_secs is not None:
            return time.time() >= self._last_triggered_time + self._every_secs
        return step >= self._last_triggered_step + self._every_steps

    def update_last_triggered_step(self, step):
        """(seconds, steps) since it was triggered before; Nones the first time."""
        now = time.time()
        if self._last_triggered_time is None:
            elapsed = None, None
        else:
            elapsed = now - self._last_triggered_time, step - self._last_triggered_step
        self._last_triggered_time = now
        self._last_triggered_step = step
        return elapsed

    def last_triggered_step(self):
        """The step that the hook last acted at, or None."""
        return self._last_triggered_step


class NeverTriggerTimer(_HookTimer):
    """Never."""

    def should_trigger_for_step(self, step):
        return False

    def update_last_triggered_step(self, step):
        return None, None

    def last_triggered_step(self):
        return None
