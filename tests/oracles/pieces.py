"""What workers are given to do in tests: processes find it by its name."""

import os
import signal


def square(value: int, wrong: int = -1) -> int:
    if value == wrong:
        raise KeyError(value)
    return value * value


def die(value: int) -> int:
    if value == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return value
