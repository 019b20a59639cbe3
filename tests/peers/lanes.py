# SPDX-License-Identifier: Apache-2.0
"""Reads the lanes of a schedule file with code of its own, and says which record each wait consumes and what happens
before what. Used to judge the answers of `millstream check`, so it shares nothing with it."""
import re

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\S+')
LANE = re.compile(r"^(stream \d+(?: of \d+)?:)(.*)$")


class Lanes:
    def __init__(self, text: str):
        self.lines = text.splitlines()
        self.tasks: list[list[str]] = []  # by stream
        self.line_of: list[int] = []      # stream -> line number
        for number, line in enumerate(self.lines):
            lane = LANE.match(line)
            if lane:
                self.line_of.append(number)
                self.tasks.append(TOKEN.findall(lane.group(2)))
        self.source = self._pair()
        self._edges()

    def _pair(self) -> dict[tuple[int, int], tuple[int, int]]:
        """wait -> record, both as (stream, index): runs the lanes, each as far as it gets."""
        place, held, source = [0] * len(self.tasks), {}, {}
        moved = True
        while moved:
            moved = False
            for stream, tasks in enumerate(self.tasks):
                while place[stream] < len(tasks):
                    task, here = tasks[place[stream]], (stream, place[stream])
                    if task.startswith("?"):
                        if task[1:] not in held:
                            break
                        source[here] = held.pop(task[1:])
                    elif task.startswith("!"):
                        held[task[1:]] = here
                    place[stream] += 1
                    moved = True
        if any(p < len(t) for p, t in zip(place, self.tasks)):
            raise ValueError("the lanes do not run to their end")
        return source

    def _edges(self) -> None:
        self.after: dict[tuple[int, int], list[tuple[int, int]]] = {}
        self.before: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for wait, record in self.source.items():
            self.after.setdefault(record, []).append(wait)
            self.before.setdefault(wait, []).append(record)

    def waits(self) -> list[tuple[int, int]]:
        return sorted(self.source)

    def name(self, place: tuple[int, int]) -> str:
        text = self.tasks[place[0]][place[1]]
        return re.sub(r"\\(.)", r"\1", text[1:-1]) if text.startswith('"') else text

    def reached(self, start: tuple[int, int], forward: bool) -> set[str]:
        """Names of the launches that happen after (or before) a place, the place itself included."""
        names, seen, todo = set(), set(), [start]
        while todo:
            place = todo.pop()
            if place in seen:
                continue
            seen.add(place)
            stream, index = place
            if self.tasks[stream][index][0] not in "!?":
                names.add(self.name(place))
            step = index + (1 if forward else -1)
            if 0 <= step < len(self.tasks[stream]):
                todo.append((stream, step))
            todo += (self.after if forward else self.before).get(place, [])
        return names

    def without(self, wait: tuple[int, int]) -> str:
        """The text with that one wait deleted."""
        stream, index = wait
        tasks = self.tasks[stream][:index] + self.tasks[stream][index + 1:]
        lines = list(self.lines)
        number = self.line_of[stream]
        lines[number] = " ".join([LANE.match(lines[number]).group(1), *tasks])
        return "\n".join(lines) + "\n"
