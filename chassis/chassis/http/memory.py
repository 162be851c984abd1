"""Memory that goes back to the system once it is free, where the C library is glibc's.

By itself glibc keeps freed memory for later, and after the first free of a large block it serves large blocks from the
same heap, where small ones between them hold them in place. The functions used are documented ones (mallopt(3),
malloc_trim(3)).
"""

from __future__ import annotations

import ctypes
import gc

_M_MMAP_THRESHOLD = -3
_LARGE_BYTES = 128 * 1024  # glibc's first value; setting it keeps it from growing

_library = ctypes.CDLL(None)


def return_large_blocks() -> None:
    """From now on a large block goes back to the system as soon as it is free. For the start of a process."""
    if hasattr(_library, "mallopt"):
        _library.mallopt(_M_MMAP_THRESHOLD, _LARGE_BYTES)


def give_back() -> None:
    """Gives all free memory back, that of unreachable cycles too. Takes tens of milliseconds."""
    gc.collect()
    if hasattr(_library, "malloc_trim"):
        _library.malloc_trim(0)
