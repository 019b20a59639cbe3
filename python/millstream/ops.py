# SPDX-License-Identifier: Apache-2.0
"""Orders between streams by hand: record and wait, and events with tags.

The compiler orders everything that data flows through. These calls are for what it cannot know: that an
operator must not start before another one, although it reads nothing of it.
"""

from __future__ import annotations

import threading

import torch

from . import _markers

__all__ = ["Event", "npu_create_tagged_event", "npu_record_tagged_stream", "npu_tagged_event_record",
           "npu_tagged_event_wait", "record",
           "release_tagged_events", "wait"]


def record() -> torch.Tensor:
    """A token for "after the last operator before this call on the current stream": a tensor without elements.

    Without an operator before it on that stream it stands for nothing, and waiting for it is no order.
    """
    return _markers.RECORD()


def wait(tensors: list[torch.Tensor]) -> None:
    """The next operator on the current stream runs after the makers of `tensors`, which may be tokens of record().

    Raises ValueError if the list is empty or holds something that is not a tensor.
    """
    if tensors is None or len(tensors) == 0:
        raise ValueError("wait() requires at least one tensor input")
    for tensor in tensors:
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"wait() inputs must be torch.Tensor, but got {type(tensor).__name__}")
    _markers.WAIT(list(tensors))


class Event:
    """A named event. Made by npu_create_tagged_event; `tag` is its name."""

    def __init__(self, tag: str) -> None:
        self.tag = tag


_tags: set[str] = set()
_lock = threading.Lock()


def npu_create_tagged_event(tag: str) -> Event:
    """A new event. Raises ValueError if the tag names one already (until `release_tagged_events`)."""
    if not isinstance(tag, str):
        raise TypeError(f"npu_create_tagged_event() argument 'tag' must be str, but got {type(tag).__name__}")
    with _lock:
        if tag in _tags:
            raise ValueError(f"tagged event tag {tag} is already in use; take another tag or call "
                             "millstream.ops.release_tagged_events()")
        _tags.add(tag)
    return Event(tag)


def release_tagged_events() -> None:
    """Forgets all tags, so that they can be used again."""
    with _lock:
        _tags.clear()


def npu_tagged_event_record(event: Event) -> None:
    """Records the event behind the last operator before this call on the current stream."""
    if not isinstance(event, Event):
        raise ValueError(f"tagged event {event!r} is not in use; make it with npu_create_tagged_event")
    _markers.EVENT_RECORD(event.tag)


def npu_tagged_event_wait(event: Event) -> None:
    """The next operator on the current stream runs after the event's last record in this graph.

    A record in a graph that ran before is behind us already: then there is nothing to wait for.
    """
    if not isinstance(event, Event):
        raise ValueError(f"tagged event {event!r} is not in use; make it with npu_create_tagged_event")
    _markers.EVENT_WAIT(event.tag)


def npu_record_tagged_stream(tensor: torch.Tensor, tagged_stream: str) -> None:
    """Accepted and without effect: a value lives until its last reader on any stream has run, by the plan."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"npu_record_tagged_stream() argument 'tensor' must be torch.Tensor, "
                        f"but got {type(tensor).__name__}")
    if not isinstance(tagged_stream, str):
        raise TypeError(f"npu_record_tagged_stream() argument 'tagged_stream' must be str, "
                        f"but got {type(tagged_stream).__name__}")
