"""Pseudo-terminals for tests: what a program shows on a terminal of so many columns."""
import fcntl
import os
import pty
import struct
import termios


def set_width(terminal, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


def open_terminal(columns):
    """The end that reads what is shown, and the end for the program."""
    terminal, end = pty.openpty()
    set_width(terminal, columns)
    return terminal, end


def parts_of(terminal):
    """What is shown, piece by piece, until the program's end is closed everywhere; closes this one."""
    try:
        while part := os.read(terminal, 1 << 16):
            yield part
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(terminal)
