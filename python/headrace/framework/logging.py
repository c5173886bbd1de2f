"""Messages of the package, by Python's logging under upstream's logger name."""

import logging

_logger = []


def get_logger():
    """The logger of the package."""
    if not _logger:
        logger = logging.getLogger("headrace")
        if not logger.handlers:
            handler = logging.StreamHandler()
            handler.setFormatter(
                logging.Formatter("%(levelname)s:tensorflow:%(message)s")
            )
            logger.addHandler(handler)
            logger.propagate = False
        _logger.append(logger)
    return _logger[0]


def warn(message, *args):
    """Logs a warning."""
    get_logger().warning(message, *args)


def info(message, *args):
    """Logs a piece of information."""
    get_logger().info(message, *args)
